package local

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
)

// Tick is the period of the loop.
const Tick = 100 * time.Millisecond

const (
	// period is that of a quota in seconds, to which [trimtab.Envelope] refers.
	period = 0.1
	// silentTicks without a fresh reading end a loan.
	silentTicks = 3
	// latePeriods after which a tick says nothing about now.
	latePeriods = 3
	// A loan that lasts loanAsks asks for a round; so often at most, per group.
	loanAsks, asksEvery = 5 * time.Second, 10 * time.Second
	// fullHost is the share of the time in which all of a host's tasks waited for a CPU,
	// beyond stalls of quotas, above which quotas cure nothing.
	fullHost = 0.1
	// slack of comparisons, relative: quotas are written in whole microseconds.
	slack = 1e-3
)

// Group is one control group in a plan.
type Group struct {
	Name     string
	Envelope trimtab.Envelope
}

// Plan is what the planner gave this host.
type Plan struct {
	Groups []Group
	// Capacity is the amount that the groups share, in cores: the quota of their parent.
	Capacity float64
	// Lendable is how much the sum of what is set may exceed the sum of targets, in cores.
	Lendable float64
	// Until is when the lease ends, on the clock of Look.At.
	Until time.Duration
}

// Validate refuses a plan whose targets exceed the capacity.
func (p *Plan) Validate() error {
	if !usable(p.Capacity) || !usable(p.Lendable) {
		return trimtab.Invalidf("plan of host: capacity %v, lendable %v", p.Capacity, p.Lendable)
	}
	seen, sum := make(map[string]bool, len(p.Groups)), 0.0
	for i := range p.Groups {
		g := &p.Groups[i]
		if g.Name == "" || seen[g.Name] {
			return trimtab.Invalidf("plan of host: group %.300q: no name, or one that occurs twice", g.Name)
		}
		if err := g.Envelope.Validate(); err != nil {
			return err
		}
		seen[g.Name] = true
		sum += g.Envelope.Target
	}
	if sum > p.Capacity*(1+1e-9) {
		return trimtab.Invalidf("plan of host: targets add up to %v, capacity %v", sum, p.Capacity)
	}
	return nil
}

// State says what is known of a group.
type State int

// The states of a group.
const (
	// Missing: it could not be read.
	Missing State = iota
	// Fresh: it was read.
	Fresh
	// Gone: it is no longer there, and holds nothing.
	Gone
)

// Reading has the values that were read of one group.
type Reading struct {
	State State
	// Used and Stalled are counters, in seconds: CPU time used, and time in which the
	// quota stopped the group, counted once however many CPUs stood still.
	Used, Stalled float64
	// Set is the quota found, in cores; +Inf: none is set; NaN: not known.
	Set float64
}

// Look is what one tick sees.
type Look struct {
	// At is a monotonic time that counts sleep.
	At time.Duration
	// Contention is the share of the time since the last look in which the host's tasks
	// waited for a CPU and no quota was the cause; nil where nothing measures it. What is
	// no share counts as full.
	Contention *float64
	// Groups are in the order of the plan.
	Groups []Reading
}

// Write sets one group's quota, and its burst, both in cores.
type Write struct {
	Group      int
	Set, Burst float64
}

// Cause is why a round is asked for.
type Cause string

// The causes.
const (
	// LongLoan: a loan that lasts needs a plan.
	LongLoan Cause = "loan lasts"
	// NoHeadroom: more was wanted than the host has left.
	NoHeadroom Cause = "host has no room"
	// HostFull: more was wanted while tasks wait for CPUs, which no quota cures.
	HostFull Cause = "host is full"
)

// Ask asks for a round, for one group.
type Ask struct {
	Group int
	Cause Cause
	// Since is when the loan began, or the room ended.
	Since time.Duration
	// Want is the amount that the group would have, in cores.
	Want float64
}

// Decision is the result of a tick. Its slices are valid until the next call.
type Decision struct {
	// Shrinks are to be written first; Grow has the rest.
	Shrinks []Write
	Asks    []Ask
	// Expired: the lease is over, loans end here, and baselines are the caller's.
	Expired bool
	// Late: the tick said nothing about now, all return to their targets.
	Late bool
}

// Status is the state of one group, and totals since its first plan.
type Status struct {
	Name string
	// Set is its quota; Target the quota that it returns to. Set − Target is borrowed, or lent
	// where negative.
	Set, Target float64
	// Foreign: another program has set its value, which is left alone.
	Foreign bool
	// Granted, Lent and Borrowed in core-seconds; Stalled in seconds.
	Granted, Lent, Borrowed, Stalled float64
	Writes                           int
	// Demand is the rate at which work comes, in cores.
	Demand float64
}

// Host is the loop over one host. It is not safe for concurrent use.
type Host struct {
	plan    Plan
	groups  []group
	at      time.Duration
	began   bool
	waits   bool // grows of the last tick were not asked for yet
	targets float64

	want, next []float64
	shrinks    []Write
	grows      []Write
	asks       []Ask
}

// New returns a loop without a plan, which does nothing.
func New() *Host { return &Host{} }

// SetPlan replaces the plan. If p is invalid, it returns an error that is [trimtab.ErrInvalid]
// and keeps the former plan. A group of the same name keeps its measurements.
func (h *Host) SetPlan(p *Plan) error {
	if err := p.Validate(); err != nil {
		return err
	}
	old := make(map[string]*group, len(h.groups))
	for i := range h.groups {
		old[h.groups[i].name] = &h.groups[i]
	}
	groups := make([]group, len(p.Groups))
	h.targets = 0
	for i := range p.Groups {
		g := &p.Groups[i]
		if was := old[g.Name]; was != nil {
			groups[i] = *was
			groups[i].envelope = g.Envelope
		} else {
			groups[i] = newGroup(g)
		}
		h.targets += g.Envelope.Target
	}
	h.plan, h.groups = *p, groups
	h.plan.Groups = nil
	h.want, h.next = make([]float64, len(groups)), make([]float64, len(groups))
	h.waits = false
	return nil
}

// limit is the most that all groups may have together, in cores.
func (h *Host) limit() float64 { return math.Min(h.plan.Capacity, h.targets+h.plan.Lendable) }

// Status appends the state of each group, in the order of the plan.
func (h *Host) Status(to []Status) []Status {
	for i := range h.groups {
		g := &h.groups[i]
		to = append(to, Status{Name: g.name, Set: g.held, Target: g.envelope.Target, Foreign: g.foreign, Granted: g.sums.granted,
			Lent: g.sums.lent, Borrowed: g.sums.borrowed, Stalled: g.sums.stood, Writes: g.sums.writes, Demand: g.mean})
	}
	return to
}

// usable reports whether v is a finite number >= 0.
func usable(v float64) bool { return v >= 0 && !math.IsInf(v, 0) }
