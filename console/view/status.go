package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// Filter selects what [Model.Page] returns.
type Filter struct {
	// Query is the filter's text; see [Status]. Empty keeps all.
	Query         string
	Limit, Offset int
	// Sort is the order of workloads; see [Status].
	Sort string
}

// Validate returns an error for a filter that is too long: it is evaluated for every workload.
func (f *Filter) Validate() error {
	if len(f.Query) > maxQuery {
		return trimtab.Invalidf("read q: %d bytes, limit %d", len(f.Query), maxQuery)
	}
	return f.validSort()
}

// Status returns the pool as it is at now with all workloads, worst first.
func (v *Model) Status(now time.Time) Status { return v.Page(now, Filter{Limit: MaxRows}) }

// Page returns the pool as it is at now with the workloads that f selects,
// worst first unless f sorts.
func (v *Model) Page(now time.Time, f Filter) Status {
	v.mu.Lock()
	defer v.mu.Unlock()
	s, m := Status{Pool: v.config.Pool, Resource: v.config.Resource, Objective: v.config.Objective, Capacity: v.config.Capacity,
		Time: now, Counts: map[string]int{}, Unmet: unmetOn(&v.fleet, &v.jobs, now)}, v.at(now)
	v.fleet.fill(&s, now)
	if p := v.plans.newest.Value; p != nil {
		s.Plan, s.Cause, s.Value, s.Exceeds = p.ID(), p.Cause, p.Value, v.fleet.exceeds(p, &v.config, now)
		if p.Capacity > 0 {
			s.Capacity = min(s.Capacity, p.Capacity)
		}
	}
	keeps := parseQuery(f.Query)
	rows := make([]Row, 0, len(v.workloads.all))
	for _, w := range v.workloads.all {
		if r := m.row(w); keeps(&r) {
			rows = append(rows, r)
			s.Counts[r.Kind]++
		}
	}
	f.order(rows)
	s.Total = len(rows)
	s.Offset = min(max(f.Offset, 0), len(rows))
	s.Workloads = rows[s.Offset:min(len(rows), s.Offset+min(max(f.Limit, 1), MaxRows))]
	for i := range s.Workloads {
		s.Workloads[i].Budget = v.workloads.all[s.Workloads[i].Name].budget(m.round, now)
		if d := s.Workloads[i].Decision; d != nil {
			s.Workloads[i].Decision = d.shown(now, m.round).brief()
		}
	}
	return s
}

// fill adds the capacity and allocation of the hosts to a status.
func (f *fleet) fill(s *Status, now time.Time) {
	for h := range f.All() {
		s.Paused = s.Paused || h.Paused
		s.LeaseLeft = max(s.LeaseLeft, h.Lease(now))
		if h.Gone(now) {
			continue
		}
		s.Hosts++
		for i := range h.Knobs {
			if k := &h.Knobs[i]; k.Resource == s.Resource || k.Resource == "" || s.Resource == "" {
				if a := k.InForce(); a.Unlimited {
					s.Unlimited++
				} else {
					s.Allocated = sum(s.Allocated, a)
				}
			}
		}
	}
	s.Allocated.Value = round9(s.Allocated.Value)
}

// maxQuery bounds the text of a filter, in bytes.
const maxQuery = 300

// wordsOf returns the words of a filter's text, in lower case, each once.
func wordsOf(text string) []string {
	words := strings.Fields(strings.ToLower(text[:min(len(text), maxQuery)]))
	slices.Sort(words)
	return slices.Compact(words)
}

// parseQuery returns which rows a filter's text keeps.
func parseQuery(text string) func(*Row) bool {
	words := wordsOf(text)
	return func(r *Row) bool {
		for _, w := range words {
			if !r.matches(w) {
				return false
			}
		}
		return true
	}
}

// matches reports whether the row matches a word of a filter, in lower case.
func (r *Row) matches(word string) bool {
	if key, value, ok := strings.Cut(word, ":"); ok {
		switch key {
		case "class":
			return string(r.Class) == value
		case "mode":
			return string(r.Mode) == value
		case "state":
			return r.Kind == value
		}
	}
	if word == "held" {
		return r.Code == codeHeld
	}
	return strings.Contains(strings.ToLower(r.Name), word)
}

// rank orders rows, worst first: workloads that miss their SLO, then those whose data
// or knob has a problem, then the good ones, then those that are not planned for.
func rank(r *Row) int {
	switch r.Kind {
	case "bad":
		if r.Code == codeMisses {
			return 0
		}
		return 1
	case "note":
		return 2
	}
	if r.Mode == trimtab.Off {
		return 4
	}
	return 3
}

// worth orders rows of one rank: least utility first, unknown last.
func worth(r *Row) float64 {
	if r.Utility == nil {
		return 2
	}
	return *r.Utility
}

// The states of a workload, as in [Row].Code.
const (
	codeOK       = "ok"
	codeOff      = "off"
	codeMisses   = "misses"
	codeLearning = "learning"
	codeWaiting  = "waiting"
	codeHeld     = "held"
	codeStale    = "stale"
	codeKnob     = "knob"
	// It uses all that it has and its requests wait, whatever its spans say.
	codeStarved = "starved"
	// What is measured of it is more when things get worse, so that it says nothing.
	codeDoubtful = "doubtful"
	// Discovered: the workload was found in the spans and is not in the
	// configuration.
	Discovered = "discovered"
)

// moment is a view of the pool's workloads at one time.
type moment struct {
	now      time.Time
	round    time.Duration
	resource string // of the pool
	plans    *plans
}

func (v *Model) at(now time.Time) *moment {
	return &moment{now, v.config.Round, v.config.Resource, &v.plans}
}

// main returns the workload's allocation of the pool's resource, or else of any resource that it
// has.
func (m *moment) main(s *state) held { return s.main(m.resource, m.now) }

// situation is the state of a workload.
type situation struct {
	code string
	// why is the reason, where the code has one.
	why string
	// since is the time since which it has the state, if known.
	since time.Time
}

// text is the situation for people.
func (s *situation) text() string {
	switch s.code {
	case codeOff:
		return "watched only"
	case codeMisses:
		return "misses its SLO"
	case codeWaiting:
		return "waiting for data"
	case Discovered:
		return "discovered, not configured"
	}
	if s.why != "" {
		return s.code + ": " + s.why
	}
	return s.code
}

// row is the workload at now.
func (m *moment) row(s *state) Row {
	r := Row{Name: s.Name, Mode: s.Mode, Class: s.Class, SLO: s.SLO, Share: s.Share}
	is := m.stateAt(s)
	r.Code, r.State, r.Since, r.Kind = is.code, is.text(), is.since, stateClass(is.code)
	if s.Target > 0 {
		r.SLOTarget = &s.Target
	}
	if e := s.estimate.Value; e != nil {
		r.Performance, r.Latency, r.Observed, r.Reports = e.Performance, e.Latency, e.Observed, e.Reports
		age := trimtab.SecondsOf(s.estimate.Age(m.now))
		r.Age = &age
		if e.Load != nil {
			r.Load, r.LoadUpper = &e.Load.Now, &e.Load.Upper
			r.LoadAge, r.LoadStale = m.loadAge(s)
		}
		if s.Utility != nil && e.Performance != nil {
			u := s.Utility(*e.Performance)
			r.Utility = &u
		}
	}
	r.Shed = m.shed(s)
	r.has(s, m)
	r.Notes = m.notes(s)
	if s.declared && r.Observed != nil {
		slo, _ := draftSLO(&r)
		r.Notes = append(r.Notes, "proposed "+strings.TrimPrefix(slo, "# "))
	}
	if d := s.latest(m.resource); d != nil {
		r.Decision, r.Target, r.Demand = d, d.Action.Why.Target, d.Action.Why.Demand
	}
	return r
}

// has sets the allocation of the row: of the pool's resource, and of others.
func (r *Row) has(s *state, m *moment) {
	d := m.main(s)
	r.Instances, r.Hosts = d.instances, d.hosts
	if d.instances == 1 {
		r.Knob = d.knob.Knob
	}
	if d.hosts == 1 {
		r.Host = d.knob.Host
	}
	main := m.resource == "" || d.resource == m.resource
	if main {
		r.Allocation, r.Total, r.Pending = d.amounts()
	}
	for _, resource := range s.resources() {
		if main && resource == d.resource {
			continue
		}
		if o := s.held(resource, m.now); o.readable > 0 {
			if r.Others == nil {
				r.Others = map[string]trimtab.Amount{}
			}
			r.Others[resource] = o.effective
		}
	}
}

// notes returns further remarks on the workload's allocation.
func (m *moment) notes(s *state) (all []string) {
	if a, ok := m.plans.alarms[s.Name]; ok && s.Mode != trimtab.Off && a.Until.After(m.now) {
		more := ""
		if a.More > 0 {
			more = fmt.Sprintf(" and %d more", a.More)
		}
		all = append(all, fmt.Sprintf("alert %s%s keeps it from being lowered, since %s, until %s unless it is repeated", brief(a.Name), more, clockOf(a.Since, m.now), clockOf(a.Until, m.now)))
	}
	if s.estimate.Value != nil {
		all = append(all, s.estimate.Value.Notes...)
	}
	for _, h := range s.hosts() {
		for i, its := 0, h.Of(s.Name); i < len(its); i++ {
			k := &its[i]
			st := k.Status
			if st == nil {
				continue
			}
			note := st.Note
			// Only a knob that is set to that maximum is limited by it.
			if st.Caps && st.Cap(k.Now).Equal(trimtab.Units(st.Most), capped) {
				note = fmt.Sprintf("%s, gives %s", st.By, Sized(st.Most, k.Resource))
			}
			if note != "" && !slices.Contains(all, note) && len(all) < maxNotes {
				all = append(all, note)
			}
		}
	}
	return all
}

// clockOf is a time for people: the day too, where it is another.
func clockOf(t, now time.Time) string {
	if t, now := t.Local(), now.Local(); t.YearDay() != now.YearDay() || t.Year() != now.Year() {
		return t.Format("2006-01-02 15:04")
	}
	return Clock(t)
}

const (
	// capped is how far below the limit above it a knob may be and still count as at that limit,
	// since rounding to a quota, or to a unit of the planner, lowers it.
	capped = 0.01
	// maxNotes is the largest number of remarks on a state.
	maxNotes = 5
)

// latest returns the newest decision on the pool's resource, or on any resource if the newest plan
// on the workload does not have that one.
func (s *decisionLog) latest(resource string) *Decision {
	n := len(s.decisions)
	if n == 0 {
		return nil
	}
	last := s.decisions[n-1]
	for _, d := range slices.Backward(s.decisions) {
		if d.Epoch != last.Epoch || d.Sequence != last.Sequence {
			break
		}
		if d.Action.Resource == resource {
			return d
		}
	}
	return last
}

// stateAt returns the state of the workload; a state that needs a person takes precedence.
func (m *moment) stateAt(s *state) situation {
	e := s.estimate.Value
	held, isHeld := m.plans.heldNow(s)
	has := m.main(s)
	knob := has.problem()
	planned := s.declared && s.Mode != trimtab.Off
	switch {
	case s.declared && knob != "":
		return situation{codeKnob, knob, s.since.knob}
	case !s.declared && e != nil:
		return situation{code: Discovered}
	case e == nil && planned && isHeld && held.Code != codes.HeldNoEstimate:
		return situation{codeHeld, held.Text, s.kept.heldSince}
	case e == nil:
		return situation{codeWaiting, "", s.kept.heldSince}
	case m.silent(s):
		return situation{codeStale, "nothing for " + Age(trimtab.SecondsOf(s.estimate.Age(m.now))), e.Time}
	case planned && e.Starved > 0 && !s.missesIt(e):
		return situation{codeStarved, starvedText(e), m.now.Add(-e.Starved.Duration())}
	case e.Hold != nil && s.declared:
		return situation{codeHeld, e.Hold.Text, s.missingSince()}
	case planned && s.missesIt(e):
		return situation{codeMisses, "", s.since.miss}
	case planned && s.MemoryAlone && unlearnt(e).code != "":
		return unlearnt(e)
	case planned && e.Curve == nil && !s.MemoryAlone:
		return situation{code: codeLearning}
	case planned && isHeld:
		return situation{codeHeld, held.Text, s.kept.heldSince}
	case !planned:
		return situation{code: codeOff}
	case s.Doubt != "":
		return situation{code: codeDoubtful, why: s.Doubt}
	}
	return situation{code: codeOK}
}

// missesIt reports whether the measured performance misses the SLO.
func (s *state) missesIt(e *trimtab.Estimate) bool {
	return e.Hold == nil && s.Target > 0 && e.Performance != nil && *e.Performance < s.Target
}

// starvedText says why a workload starves, and which input is missing.
func starvedText(e *trimtab.Estimate) string {
	if e.Hold != nil {
		return e.Hold.Text
	}
	text := "it uses all that it has and waits, and what is measured of its requests does not tell what waits"
	if wait := e.Waits(); wait != "" {
		text += ": " + wait
	}
	return text
}

// silent reports whether the last estimate of a workload is too old to count.
func (m *moment) silent(s *state) bool {
	return m.round > 0 && s.estimate.Age(m.now) > Patience(m.round)
}

// Patience is the age up to which an estimate counts while no newer one comes.
func Patience(round time.Duration) time.Duration { return 3*round + 5*time.Second }

// loadAge is how long ago the load of an estimate was measured last, and whether nothing
// newer came in time.
func (m *moment) loadAge(s *state) (age *trimtab.Seconds, stale bool) {
	e := s.estimate.Value
	stale = m.silent(s) || e.LoadMissing()
	at, known := s.seen["load"]
	if !known && !stale {
		return nil, false
	}
	if !known {
		at = e.Time
	}
	old := trimtab.SecondsOf(max(0, m.now.Sub(at)))
	return &old, stale
}

// missingSince returns since when an estimate has been held: when the first of its missing
// inputs was last there.
func (s *state) missingSince() time.Time {
	since := s.since.hold
	for _, m := range s.missing {
		if m.Since.Before(since) {
			since = m.Since
		}
	}
	return since
}

// stateClass sorts states by what they ask of a person: "ok", "note" (look
// when there is time), "bad" (look now), "quiet" (not planned for).
func stateClass(code string) string {
	switch code {
	case codeOK:
		return "ok"
	case codeOff, Discovered:
		return "quiet"
	case codeMisses, codeKnob, codeStale, codeStarved:
		return "bad"
	}
	return "note"
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
