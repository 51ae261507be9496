package analyzer

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/workingset"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/internal/shortage"
	"github.com/trimtab/trimtab/quantity"
)

const (
	// memoryGone is how long an instance without readings is remembered. If an instance of the same name
	// appears within that time, learning goes on from there.
	memoryGone = 8 * 24 * time.Hour
	// memoryStale is the age above which a working set is not used. Where readings come less often, it
	// is up to memoryRare, and three times the interval between readings.
	memoryStale, memoryRare = 10 * time.Second, 90 * time.Second
	// sameKill is the longest time between two sources' news of one kill.
	sameKill = 90 * time.Second
	// memoryBegun is how long a workload must have been watched before an instance that appears counts
	// as just started.
	memoryBegun = time.Minute
	// page is how many bytes a refault reads at least; fullGroup is the part of the limit from which a group
	// counts as full.
	page, fullGroup = 4096, 0.95
)

// memories learns how much memory the instances of a workload need.
type memories struct {
	of map[counterKey]*memory // by host and instance
	// since is the time of the first sample. Until ends, an instance that begins needs at least floor,
	// since others of the workload were killed.
	since time.Time
	floor float64
	ends  time.Time
	// news says that an instance was short of memory, or was killed, since the last estimate.
	news bool
}

// memory is the state of one instance.
type memory struct {
	workingset.Learner
	Limit     *float64  `json:"limit,omitempty"`
	Kills     float64   `json:"kills,omitempty"`
	LastKill  time.Time `json:"last_kill"`
	LastShort time.Time `json:"last_short"`
	// every is the time between the last two readings, readBy their source, toldBy that of the last kill.
	every          time.Duration
	readBy, toldBy string
	// Advised is the limit that trimtab would have set at the last estimate, in bytes; 0: none yet. Days
	// are accounts of the last days, oldest first.
	Advised float64      `json:"advised,omitempty"`
	Days    []accountDay `json:"days,omitempty"`
	// Most is the highest limit that it had, in bytes.
	Most float64 `json:"most_limit,omitempty"`
	// Cache is how much page cache a probe found it to need, in bytes, and Probed when; zero: none did.
	Cache  float64   `json:"cache,omitempty"`
	Probed time.Time `json:"probed,omitzero"`
	// usage is all memory of the group, with all of the page cache, in bytes; 0: it is not known. again has
	// what was read again in the current minute, refaulted when that was last told.
	usage     float64
	again     edge
	refaulted time.Time
	// told has the newest of what is told of it, uses the last working sets.
	told *shortage.Reading
	uses shortage.Uses
}

// edge is an amount since a time, in bytes.
type edge struct {
	at  time.Time
	use float64
}

// short reports whether an instance is short of memory, as of a sample: the newest of what was told, with
// events and pressure only of this sample.
func (x *memory) short(s *trimtab.Sample) bool {
	if x.told == nil {
		unknown := shortage.Unknown(shortage.Name{})
		x.told = &unknown
	}
	v := x.told.Field(s.Quantity)
	if v == nil {
		return false
	}
	if *v = s.Value; s.Missing != "" {
		*v = math.NaN()
	}
	now, rise := *x.told, 0.0
	switch s.Quantity {
	case quantity.PressureMemorySome, quantity.MemoryHighEvents, quantity.MemoryMaxEvents:
		*v = math.NaN()
	case quantity.WorkingSet:
		x.uses.Take(time.Duration(s.Time.UnixNano()), *v)
		rise = x.uses.Rise()
	}
	return shortage.Of(&now, rise) != ""
}

// needed returns the part of a working set that counts: of page cache no more than the last probe found to be
// needed, unless pages were read again since under its limit.
func (x *memory) needed(s *trimtab.Sample) float64 {
	if x.Probed.IsZero() || s.Time.Sub(x.Probed) > memoryGone || s.Time.Before(x.FloorEnds) || math.IsNaN(x.told.Anonymous) {
		return s.Value
	}
	return min(s.Value, x.told.Anonymous+x.Cache)
}

// stale reports whether the working set is too old to be used.
func (x *memory) stale(now time.Time) bool {
	return now.Sub(x.Last) > max(memoryStale, min(3*x.every, memoryRare))
}

// refaults counts what was read again, in bytes a second, for a minute. Pages that a group reads again
// below its limit do not count: they were reclaimed since the host is short.
func (x *memory) refaults(at time.Time, rate float64) {
	since := at.Sub(x.refaulted)
	x.refaulted = at
	if at.Sub(x.again.at) >= time.Minute {
		x.again = edge{at: at}
	}
	if x.Limit == nil || x.usage < fullGroup**x.Limit || since > time.Minute {
		return
	}
	x.again.use += rate * since.Seconds()
	x.Refaulted(at, *x.Limit, x.Most, x.again.use)
}

// observe adds a sample of memory, and returns false if there are too many instances to add another.
// It ignores other samples.
func (m *memories) observe(s *trimtab.Sample) bool {
	switch s.Quantity {
	case quantity.WorkingSet, quantity.MemoryUsage, quantity.MemoryAnonymous, quantity.MemoryNeeded, quantity.MemoryLimit, quantity.OOMKills, quantity.MemoryHighEvents, quantity.MemoryMaxEvents, quantity.PressureMemorySome, quantity.Refaults:
	default:
		return true
	}
	k := counterKey{host: s.Host, instance: s.Instance}
	x := m.of[k]
	if x == nil {
		kill := s.Quantity == quantity.OOMKills && s.Value > 0 // perhaps before it was read once
		if s.Quantity != quantity.WorkingSet && s.Quantity != quantity.MemoryLimit && !kill || s.Missing != "" {
			return true
		}
		if len(m.of) >= quantity.MaxMemoryNeeds && !m.forgetOne(s.Time) {
			return false
		}
		x = m.begin(k, s)
	}
	if x.short(s) && s.Time.After(x.LastShort) {
		m.news = m.news || s.Time.Sub(x.LastShort) >= time.Second
		x.LastShort = s.Time
	}
	if s.Missing != "" {
		switch s.Quantity {
		case quantity.MemoryLimit:
			x.Limit = nil
		case quantity.MemoryUsage:
			x.usage = 0
		}
		return true
	}
	switch s.Quantity {
	case quantity.WorkingSet:
		if x.Last.IsZero() {
			m.news = m.news || s.Time.Before(x.FloorEnds) // its limit must not wait for a report
		} else if since := s.Time.Sub(x.Last); since > 0 {
			if len(x.Hours) > 0 && since > memoryStale+memoryBegun {
				x.Start(s.Time) // the instance was away
			}
			x.every = since
		}
		x.readBy = s.Source
		before := x.Last
		x.Take(s.Time, x.needed(s))
		x.count(before, x.Last)
	case quantity.MemoryLimit:
		limit := s.Value
		if x.Limit != nil && limit > *x.Limit { // what fills the new room is no sign of too little
			x.again = edge{s.Time, *x.Limit - limit}
		}
		x.Limit, x.Most = &limit, max(x.Most, limit)
	case quantity.MemoryUsage:
		x.usage = s.Value
	case quantity.Refaults:
		x.refaults(s.Time, page*s.Value)
	case quantity.OOMKills:
		m.killed(x, s)
	case quantity.MemoryNeeded:
		x.Learner.Probed(s.Window.Duration(), s.Value)
		if a := x.told.Anonymous; a >= 0 {
			x.Probed, x.Cache = s.Time, max(0, s.Value-a)
		}
	}
	return true
}

// begin adds an instance that was not known. Pods, which the two sources below tell of, are alike and
// have new names: a new one goes on from what was learnt of the one that was watched for longest.
func (m *memories) begin(k counterKey, s *trimtab.Sample) *memory {
	at := s.Time
	if m.of == nil {
		m.of, m.since = map[counterKey]*memory{}, at
	}
	x := &memory{}
	if s.Source == "kubernetes" || s.Source == "prometheus" {
		var best workingset.Need
		for _, o := range m.of {
			if n, ok := o.Need(at); ok && cmp.Or(cmp.Compare(n.History, best.History), cmp.Compare(n.Limit, best.Limit)) > 0 {
				best, x.Learner = n, o.Clone()
			}
		}
		x.Last, x.Use = time.Time{}, 0
	}
	if at.Sub(m.since) > memoryBegun {
		x.Start(at)
	}
	if at.Before(m.ends) {
		x.Floor, x.FloorEnds = m.floor, m.ends
	}
	m.of[k] = x
	return x
}

// forgetOne drops the instance that is gone for longest; false: none is.
func (m *memories) forgetOne(now time.Time) bool {
	var gone counterKey
	last := now
	for k, x := range m.of {
		if x.stale(now) && x.Last.Before(last) {
			gone, last = k, x.Last
		}
	}
	delete(m.of, gone)
	return last != now
}

// killed records kills, and raises the need of this instance and of those that begin later.
func (m *memories) killed(x *memory, s *trimtab.Sample) {
	if !(s.Value > 0) || x.toldBy != s.Source && s.Time.Sub(x.LastKill) < sameKill {
		return
	}
	x.toldBy = s.Source
	x.Kills, x.LastKill, m.news = x.Kills+s.Value, s.Time, true
	x.countKills(s.Time, s.Value)
	limit := x.Use
	if x.Limit != nil {
		limit = *x.Limit
	}
	if x.Killed(s.Time, limit); x.stale(s.Time) {
		x.Take(s.Time, limit) // it used all of it
	}
	m.floor, m.ends = max(m.floor, x.Floor), x.FloorEnds
}

// needs returns what each instance needs, in order of host and instance. One whose working set is
// stale is left out.
func (m *memories) needs(now time.Time) (out []quantity.MemoryNeed) {
	m.news = false
	maps.DeleteFunc(m.of, func(_ counterKey, x *memory) bool { return !x.Last.IsZero() && now.Sub(x.Last) > memoryGone })
	for k, x := range m.of {
		n, ok := x.Need(now)
		if !ok || x.stale(now) {
			continue
		}
		v := quantity.MemoryNeed{Host: k.host, Instance: k.instance, Use: x.Use, Age: float64(age(now, x.Last)), Need: n.Limit, Limit: x.Limit, Unlearnt: n.Why, Kills: x.Kills}
		x.Advised = max(n.Limit, x.Use) * (1 + workingset.Margin)
		v.Account = x.account()
		if !x.LastKill.IsZero() {
			v.Killed = &x.LastKill
		}
		if !x.LastShort.IsZero() {
			v.Short = &x.LastShort
		}
		limit := 0.0
		if x.Limit != nil {
			limit = *x.Limit
		}
		g := x.Growth(limit)
		if x.Leak(now, g); g != nil {
			v.Growth, v.Left = g.Rate, g.Left.Seconds()
		}
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b quantity.MemoryNeed) int { return a.Compare(&b) })
	m.explain(now, out)
	return out
}

// inputs returns the sum of the working sets, as old as the oldest of them.
func (m *memories) inputs(now time.Time) []trimtab.Input {
	in := trimtab.Input{Name: string(quantity.WorkingSet), Missing: "none yet"}
	for _, x := range m.of {
		if !x.Last.IsZero() && !x.stale(now) {
			in.Value, in.Age, in.Missing, in.Source = in.Value+x.Use, max(in.Age, age(now, x.Last)), "", x.readBy
		}
	}
	return []trimtab.Input{in}
}

// hold returns why no limit follows from what is known, or nil.
func (m *memories) hold(now time.Time) *trimtab.Held {
	if in := m.inputs(now); in[0].Missing == "" {
		return nil
	}
	return &trimtab.Held{Code: codes.HeldAbsent, Text: "no reading of its memory", Input: string(quantity.WorkingSet)}
}

// save returns the state of all instances, in order.
func (m *memories) save() (out []savedMemory) {
	for k, x := range m.of {
		out = append(out, savedMemory{k.host, k.instance, *x})
	}
	slices.SortFunc(out, func(a, b savedMemory) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Instance, b.Instance))
	})
	return out
}

// savedMemory is the state of one instance that outlives the process.
type savedMemory struct {
	Host     string `json:"host,omitempty"`
	Instance string `json:"instance,omitempty"`
	memory
}

// restore restores what save returned.
func (m *memories) restore(all []savedMemory) error {
	if len(all) > quantity.MaxMemoryNeeds {
		return trimtab.Invalidf("restore memory: %d instances, limit %d", len(all), quantity.MaxMemoryNeeds)
	}
	of := make(map[counterKey]*memory, len(all))
	for _, s := range all {
		if err := cmp.Or(s.Validate(), s.validAccount()); err != nil {
			return fmt.Errorf("restore memory of %.40q: %w", s.Instance, err)
		}
		if m.since.IsZero() || s.First.Before(m.since) {
			m.since = s.First
		}
		x := s.memory
		of[counterKey{host: s.Host, instance: s.Instance}] = &x
	}
	m.of = of
	return nil
}

// memoryNotes explains the memory of the first instance that grows without end, and of the one whose
// limit is furthest from its need and the margin.
func memoryNotes(needs []quantity.MemoryNeed) (notes []string) {
	show := func(v float64) string { return trimtab.AmountOf(trimtab.Memory, trimtab.Units(v)) }
	name := func(n *quantity.MemoryNeed) string {
		if n.Instance != "" {
			return "memory of instance " + n.Instance
		}
		return "memory"
	}
	over, under := 0.0, 0.0
	var worst *quantity.MemoryNeed
	for i := range needs {
		n := &needs[i]
		if n.Growth > 0 && len(notes) == 0 {
			text := fmt.Sprintf("%s: its use of %s grows by %s a minute and does not stop", name(n), show(n.Use), show(60*n.Growth))
			if n.Left > 0 {
				text += fmt.Sprintf(": it reaches the limit in %v", trimtab.Seconds(n.Left).Duration().Round(time.Minute))
			}
			notes = append(notes, text)
		}
		if n.Limit == nil || n.Unlearnt != "" {
			continue
		}
		off := *n.Limit - n.Need*(1+workingset.Margin)
		over, under = over+max(0, off), under-min(0, off)
		if worst == nil || max(off, -off) > max(*worst.Limit-worst.Need*(1+workingset.Margin), worst.Need*(1+workingset.Margin)-*worst.Limit) {
			worst = n
		}
	}
	if worst != nil && over+under > 0.1**worst.Limit {
		notes = append(notes, fmt.Sprintf("memory: limits are %s above and %s below what was needed and %.0f%%, over %d instances; %s uses %s, needs %s, has a limit of %s",
			show(over), show(under), 100*workingset.Margin, len(needs), cmp.Or(worst.Instance, "it"), show(worst.Use), show(worst.Need), show(*worst.Limit)))
	}
	return notes
}
