package colocate

import (
	"cmp"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/reclaim"
)

// rules has the differences between the policies.
type rules struct {
	// never says that no job ever runs.
	never bool
	// limits are the limits of every service; nil: those of its Servpod, or found by search.
	limits *limits
	// alike says that resources are taken from all jobs at once, whatever each would lose (section
	// 5.2).
	alike bool
	// apart says that Servpods differ in more than their limits: a miss lowers the ceilings of each
	// by its share, and jobs are tried above its loadlimit if slack was measured there. Few jobs
	// get all that the Servpod tolerates, since few large jobs do more work than many small ones.
	apart bool
	// spares says to suspend before killing, and to keep the margin of growth if the slacklimit is
	// unknown.
	spares bool
	// deflates says to take the same share of every job, and never to kill.
	deflates bool
}

// limits has a loadlimit and a slacklimit.
type limits struct{ load, slack float64 }

// policy implements algorithm 2.
type policy struct {
	name string
	Config
	rules
	memory
	sizes sizes
	round round
}

// sizes has the amounts by which jobs start, grow and shrink.
type sizes struct {
	// greatest is the greatest capacity seen, from which start and step are computed.
	greatest, start, step Amounts
	deflates              bool // see rules
}

// memory is the state that a policy keeps between ticks.
type memory struct {
	// Services has the state of each service, by name.
	Services map[string]*standing `json:"services,omitempty"`
	// Calm counts the ticks in a row on which growth was allowed; Wait is how many are needed
	// before jobs grow.
	Calm int `json:"calm"`
	Wait int `json:"wait"`
	// Grown is when jobs last grew, started or resumed.
	Grown time.Time `json:"grown,omitzero"`
	// Tried is the last step beyond a ceiling; Tries has the history of such steps by resource.
	Tried tried           `json:"tried,omitzero"`
	Tries map[string]*try `json:"tries,omitempty"`
	// Frozen are the suspended jobs, with their former amounts.
	Frozen map[string]frozen `json:"frozen,omitempty"`
}

// New returns a policy. Its errors are [trimtab.ErrInvalid].
func New(name string, c Config) (Policy, error) {
	r, ok := map[string]rules{
		None:           {never: true},
		Heracles:       {limits: &limits{0.85, 0.10}, alike: true},
		Indiscriminate: {apart: true, alike: true},
		Rhythm:         {apart: true, spares: true},
		Deflation:      {limits: &limits{2, 0.10}, deflates: true},
	}[name]
	if !ok {
		return nil, trimtab.Invalidf("co-location policy %.40q: want %s, %s, %s, %s or %s", name, None, Heracles, Indiscriminate, Rhythm, Deflation)
	}
	if c.Period < 0 || c.MaxAge < 0 {
		return nil, trimtab.Invalidf("co-location policy: period %v, maximum age %v: want none below 0", c.Period, c.MaxAge)
	}
	for _, amounts := range []Amounts{c.Start, c.Step} {
		for name, v := range amounts {
			if !(v >= 0 && v <= greatestAmount) {
				return nil, trimtab.Invalidf("co-location policy: start or step of %.40q: %v: want 0 to %v", name, v, float64(greatestAmount))
			}
		}
	}
	if c.Period == 0 {
		c.Period = 2 * time.Second
	}
	if c.MaxAge == 0 {
		c.MaxAge = 5 * c.Period
	}
	c.Search = c.Search.withDefaults(c.Period)
	return &policy{name: name, Config: c, rules: r, memory: memory{Services: map[string]*standing{}, Wait: leastWait}, sizes: sizes{greatest: Amounts{}, deflates: r.deflates}}, nil
}

// Name returns the name that New was given.
func (p *policy) Name() string { return p.name }

// Hysteresis. Growth, a start and a resumption wait for leastWait ticks in a row on which they were
// allowed, and for numbers from after the last of them. With limits that are the same for all
// services they wait for Wait of them: each cut of a job doubles Wait, each stop of one makes it
// four times as long, up to maxWait; ten times Wait without either halves it again. With others,
// steps beyond a ceiling wait (blame.go). Reductions never wait.
const (
	leastWait = 2   // 4 s
	maxWait   = 150 // 5 min, the time that Heracles waits after a stop
	calmAfter = 10
)

// Decide makes the decision of one tick.
func (p *policy) Decide(o *Observation) Decision {
	p.sizes.learn(o.Capacity, &p.Config)
	p.agree(o.Time, p.Period)
	r := &p.round
	r.begin(o)
	if p.never {
		return r.none()
	}
	v := p.judge(o)
	p.forget(r)
	p.shed(r)
	p.remember(r, &v)
	longer := 1
	if v.verb == StopBE {
		longer = p.strike(r, &v)
	} else {
		p.spare(o)
	}
	forced := p.fit(r)
	switch v.verb {
	case StopBE:
		p.disturbed(longer)
	case SuspendBE:
		p.disturbed(1)
		p.suspendAll(r)
	case CutBE:
		p.disturbed(p.cut(r, v))
	case DisallowBEGrowth:
		p.disturbed(1)
	case AllowBEGrowth:
		p.allow(r, v, forced)
	}
	rises := v.verb == AllowBEGrowth && !forced
	r.frequency(rises)
	r.network(rises)
	return Decision{Verb: v.verb, By: v.by, Why: v.why(forced), Changes: r.changes()}
}

// agree drops times in the future, which come from before the clock was set back.
func (m *memory) agree(now time.Time, period time.Duration) {
	if m.Grown.After(now) {
		m.Grown = time.Time{}
	}
	if m.Tried.At.After(now) {
		m.Tried.At = time.Time{}
	}
	for _, t := range m.Tries {
		if t.Next.Sub(now) > 2*maxTry*period {
			t.Next = time.Time{}
		}
	}
	for _, s := range m.Services {
		if s.Acted.After(now) {
			s.Acted = time.Time{}
		}
		if s.Blamed.After(now) {
			s.Blamed = time.Time{}
		}
	}
}

// none suspends all running jobs.
func (r *round) none() Decision {
	for i := range r.allocations {
		if r.allocations[i].runs() {
			r.suspend(i)
		}
	}
	return Decision{Verb: SuspendBE, Why: "this policy runs no best-effort job", Changes: r.changes()}
}

// disturbed records a tick without growth; the wait for growth gets longer by the factor times.
func (m *memory) disturbed(times int) {
	m.Calm, m.Wait = 0, max(leastWait, min(m.Wait*times, maxWait))
}

// allow resumes, starts and grows jobs once the wait is over.
func (p *policy) allow(r *round, v verdict, forced bool) {
	if forced {
		p.Calm = 0
		return
	}
	if p.Calm++; p.Calm >= calmAfter*p.Wait && p.Wait > leastWait {
		p.Wait = max(leastWait, p.Wait/2)
		p.Calm = p.Wait
	}
	if v.free {
		p.growFreely(r)
		return
	}
	if p.Calm < leastWait || p.Calm < p.Wait && p.rules.limits != nil || v.oldest.Before(p.Grown) {
		return
	}
	p.confine(r)
	leapt := p.rules.limits == nil && p.leap(r)
	if p.resume(r) || p.grow(r) || leapt {
		p.Grown = r.o.Time
	}
}

// learn computes start and step from the greatest capacity seen.
func (z *sizes) learn(capacity Amounts, c *Config) {
	more := z.start == nil
	for name, v := range capacity {
		if v > z.greatest[name] && v <= greatestAmount {
			z.greatest[name], more = v, true
		}
	}
	if !more {
		return
	}
	if z.start = c.Start; z.start == nil {
		z.start = DefaultStart(z.greatest)
	}
	if z.step = c.Step; z.step == nil {
		z.step = DefaultStep(z.greatest)
	}
}

// queue returns the indices of the running jobs in the order in which they are reclaimed, and the
// size of a level. The slice is valid until the next call.
func (p *policy) queue(r *round, share float64) (places []int, size int) {
	places = r.order[:0]
	for i := range r.allocations {
		if r.allocations[i].runs() {
			places = append(places, i)
		}
	}
	r.order = places
	if p.alike {
		r.hashes = slices.Grow(r.hashes[:0], len(r.allocations))[:len(r.allocations)]
		for _, i := range places {
			r.hashes[i] = hash(r.o.Jobs[i].ID)
		}
		slices.SortFunc(places, func(a, b int) int {
			if r.hashes[a] != r.hashes[b] {
				return cmp.Compare(r.hashes[a], r.hashes[b])
			}
			return cmp.Compare(r.o.Jobs[a].ID, r.o.Jobs[b].ID)
		})
		return places, len(places)
	}
	r.rank(places)
	sizes, err := reclaim.Sizes(len(places), []float64{share, 1 - share}, reclaim.Nearest)
	if err != nil {
		return places, len(places)
	}
	return places, min(sizes[0], len(places))
}

// rank sorts the indices into the order of the reclamation queue. Jobs whose progress is invalid
// come first, since it is unknown whether any work would be lost.
func (r *round) rank(places []int) {
	sorted, jobs, predictable := make([]int, 0, len(places)), make([]reclaim.Job, 0, len(places)), 0
	first := len(places)
	for _, known := range []bool{true, false} {
		for _, i := range places {
			j := r.o.Jobs[i].Job
			sane := j.Useless >= 0 && j.Attained >= 0
			if can := r.o.Jobs[i].Predictable && finite(j.Loss); !sane || can != known {
				continue
			}
			if !known {
				j.Loss = 0
			}
			sorted, jobs = append(sorted, i), append(jobs, j)
		}
		if known {
			predictable = len(jobs)
		}
	}
	first -= len(jobs)
	order, _ := reclaim.Rank(jobs, predictable)
	n := 0
	for _, i := range places { // in place: what was passed over moves to the front
		if j := &r.o.Jobs[i]; !(j.Useless >= 0 && j.Attained >= 0) {
			places[n] = i
			n++
		}
	}
	for n, at := range order {
		places[first+n] = sorted[at]
	}
}

// hash is the FNV-1a hash.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
