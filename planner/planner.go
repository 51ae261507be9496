package planner

import (
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/concurrency"
	"github.com/trimtab/trimtab/planner/gaps"
	"github.com/trimtab/trimtab/planner/issue"
	"github.com/trimtab/trimtab/planner/ledger"
	"github.com/trimtab/trimtab/planner/measured"
	"github.com/trimtab/trimtab/planner/overload"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/pool"
	"github.com/trimtab/trimtab/planner/seen"
	"github.com/trimtab/trimtab/planner/shift"
	"github.com/trimtab/trimtab/planner/verdict"
)

// The planner's configuration is declared in package pool.
type (
	Config         = pool.Config
	WorkloadConfig = pool.Workload
	GroupConfig    = pool.Group
	Resource       = pool.Resource
	Bounds         = pool.Bounds
	Count          = pool.Count
	Admit          = pool.Admit
)

// Planner is the planning step of one pool. It is not safe for concurrent use.
//
// It takes Leader, Estimate, Holding, Outcome, Alert, Command, Contributions and ticks, and returns
// Plans. A round starts on the first tick after Round has passed, at once when an alert on one of
// its workloads fires or is over, and on command.
type Planner struct {
	cfg    Config
	traits policy.Traits // cfg.Policy's; Serves is cleared if the utility of some workload still rises beyond its SLO
	// resources are all resources of the pool; the first is cfg.Resource.
	resources []Resource
	workloads []*allocation.Workload // in order of name
	byName    map[string]*allocation.Workload
	// byComponent has the workloads by the component names in their spans.
	byComponent map[string][]*allocation.Workload
	ledger      *ledger.Ledger

	issue    *issue.Issuer
	next     time.Time                 // when the next round is due
	wanted   *trimtab.Cause            // cause of a round that waits until the plan under way is finished
	applies  *trimtab.Command          // apply command that waits for the same
	last     time.Time                 // start of the last round
	now      time.Time                 // time of the step that runs
	came     string                    // workload of which an instance began to serve since the last round; "": none
	overload map[string]overload.State // by host: choices for workloads that share CPU by weight there
	shift    shift.State               // the same for workloads with instances on several hosts
	// backoff is the least time between the last round and an early one that a workload's need
	// starts. It doubles while early rounds change nothing.
	backoff      time.Duration
	asked        time.Time // the time of the last Round command
	seen         seen.Values
	gaps         gaps.Gaps              // spaces the rounds that alerts and fast loops ask for
	fastRequests map[trimtab.KnobID]int // by knob: number of the fast loop's last request for a round
	verdicts     verdict.List
	// admitted has, by name of workload, what is known of how many requests it serves within its
	// SLO, for workloads whose requests in service can be limited.
	admitted map[string]*concurrency.State
	leading  bool
	counts   counts
}

// New returns a planner. It publishes nothing until a Leader value makes it the leader. The error
// is trimtab.ErrInvalid and names the field.
func New(cfg Config) (*Planner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := &Planner{cfg: cfg.WithDefaults(), traits: cfg.Policy.Traits(), byName: map[string]*allocation.Workload{}, byComponent: map[string][]*allocation.Workload{}, gaps: gaps.Gaps{Least: cfg.WithDefaults().AlertGap}, overload: map[string]overload.State{}, admitted: map[string]*concurrency.State{}}
	p.ledger = ledger.New(ledger.Config{Pool: cfg.Pool, Lease: p.cfg.Lease, Steady: max(0, p.cfg.Guard.Reversals()), Shared: p.cfg.Shared, Most: p.most, Coming: p.coming})
	p.resources = p.cfg.AllResources()
	for _, c := range p.cfg.Workloads {
		w := &allocation.Workload{Config: c, States: allocation.NewStates(&c, p.resources)}
		if c.Admit != nil {
			p.admitted[c.Name] = &concurrency.State{}
		}
		if c.Count != nil {
			w.Number = allocation.NewNumber(c.Count)
		}
		p.workloads = append(p.workloads, w)
		p.byName[c.Name] = w
		for _, name := range c.Components {
			p.byComponent[name] = append(p.byComponent[name], w)
		}
	}
	slices.SortFunc(p.workloads, func(a, b *allocation.Workload) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	p.issue = p.issuer()
	p.traits.Serves = p.traits.Serves && !slices.ContainsFunc(p.workloads, func(w *allocation.Workload) bool { return !w.Ends() })
	p.counts = newCounts()
	return p, nil
}

// Step handles one value or a tick; see [trimtab.Step].
func (p *Planner) Step(now time.Time, in trimtab.Value) []trimtab.Value {
	p.now = now
	switch v := in.(type) {
	case nil:
		return p.tick(now)
	case *trimtab.Leader:
		p.lead(now, v)
	case *trimtab.Estimate:
		if p.learn(now, v) {
			return append(p.growRound(now, p.byName[v.Workload]), p.urgentRound(now, p.byName[v.Workload])...)
		}
	case *trimtab.Holding:
		return p.hold(now, v)
	case *trimtab.Outcome:
		return p.answer(now, v)
	case *trimtab.Alert:
		return p.alert(now, v)
	case *trimtab.Command:
		return p.command(now, v)
	case *colocation.Contributions:
		p.contribute(now, v)
	default:
		p.counts.ignored["other"]++
	}
	return nil
}

// hold reads a host's holding.
func (p *Planner) hold(now time.Time, h *trimtab.Holding) []trimtab.Value {
	if !h.Of(p.cfg.Pool) || !p.ledger.Hold(now, p.own(h)) {
		p.counts.ignored["holding"]++
		return nil
	}
	p.observe(now, h)
	out := p.release(now)
	return append(out, p.observeFast(now, h)...)
}

// own returns the holding without the knobs of workloads that the configuration assigns to another
// host. Such a second instance would get a share of what the first should have.
func (p *Planner) own(h *trimtab.Holding) *trimtab.Holding {
	elsewhere := func(t trimtab.KnobState) bool {
		w := p.byName[t.Workload]
		return w != nil && w.Host != "" && w.Host != h.Host
	}
	if !slices.ContainsFunc(h.Targets, elsewhere) {
		return h
	}
	own := *h
	own.Targets = slices.DeleteFunc(slices.Clone(h.Targets), elsewhere)
	p.counts.ignored["foreign_knob"] += uint64(len(h.Targets) - len(own.Targets))
	return &own
}

// lead begins a leader term, or ends it with epoch 0. An epoch that is not higher than the last
// begins no new term.
func (p *Planner) lead(now time.Time, v *trimtab.Leader) {
	switch {
	case v.Pool != p.cfg.Pool || v.Epoch != 0 && v.Epoch < p.issue.Epoch():
		p.counts.ignored["leader"]++
	case v.Epoch == 0:
		p.wanted, p.applies = nil, nil
		p.issue.Drop()
		p.leading = false
	case v.Epoch == p.issue.Epoch():
		p.leading = true
	default:
		p.wanted, p.applies, p.next = nil, nil, now
		p.leading = true
		p.issue.Begin(v.Epoch, now)
	}
}

// most returns what the pool counts for an unlimited knob of a workload, and whether the workload
// is one of this pool.
func (p *Planner) most(workload, resource string) (most float64, ours bool) {
	if w := p.byName[workload]; w != nil && w.Number != nil && resource == trimtab.Replicas {
		return float64(w.Count.Max), true
	}
	d := p.state(workload, resource)
	if w := p.byName[workload]; w != nil && w.Admit[resource].Max > 0 {
		return w.Admit[resource].Max, true
	} else if d == nil && w != nil && w.Memory != nil && resource == trimtab.Memory {
		return w.Memory.Max, true
	}
	if d == nil {
		return 0, false
	}
	return d.Max, true
}

// index returns the index of a resource; -1: the pool does not share it.
func (p *Planner) index(resource string) int {
	return slices.IndexFunc(p.resources, func(r Resource) bool { return r.Name == resource })
}

// state returns the state of one resource of one workload, or nil.
func (p *Planner) state(target, resource string) *allocation.State {
	w, i := p.byName[target], p.index(resource)
	if w == nil || i < 0 {
		return nil
	}
	return w.States[i]
}

// learn stores the latest estimate of a workload, unless it is older than the stored one. A stored
// estimate from the future (its clock was ahead) is replaced by any other. learn reports whether
// the estimate is new, not a repeated delivery.
func (p *Planner) learn(now time.Time, e *trimtab.Estimate) (news bool) {
	w := p.byName[e.Workload]
	if w == nil || w.Estimate != nil && e.Time.Before(w.Estimate.Time) && w.Estimate.Time.Sub(now) <= p.cfg.StaleAfter {
		p.counts.ignored["estimate"]++
		return false
	}
	again := w.Estimate != nil && e.Time.Equal(w.Estimate.Time)
	if w.Estimate = e; again {
		return false
	}
	if w.Missed++; !measured.Misses(e, w.SLO) {
		w.Missed = 0
	}
	w.History.Use.Observe(now, e)
	if w.Admit != nil {
		p.admitted[w.Name].Observe(e, w.SLO)
	}
	p.report(w, e)
	w.Overload.Observe(allocation.ReportOf(e, w.SLO))
	return true
}

// tick publishes the grows that may go out now, and starts a round if one is due.
func (p *Planner) tick(now time.Time) []trimtab.Value {
	out := append(p.release(now), p.lapses(now)...)
	if !p.leading || p.issue.Waits() {
		return out
	}
	if cause, ok := p.gaps.Due(now); ok {
		return append(out, p.round(now, cause)...)
	}
	if p.came != "" && now.Sub(p.last) >= afterCame {
		next := p.next
		out = append(out, p.round(now, trimtab.Cause{Kind: codes.CauseNeed, Workload: p.came})...)
		p.next = next
		return out
	}
	if now.Before(p.next) {
		return out
	}
	return append(out, p.round(now, trimtab.Cause{Kind: codes.CauseTick})...)
}

// start starts a round now, or once the plan under way is finished.
func (p *Planner) start(now time.Time, cause trimtab.Cause) []trimtab.Value {
	if !p.leading {
		return nil
	}
	if p.issue.Waits() {
		if p.wanted == nil {
			p.wanted = &cause
		}
		return nil
	}
	return p.round(now, cause)
}

// believed returns how much of a resource each knob is assumed to take during the round.
func (r *decision) believed(resource int) *ledger.Counts {
	p := r.planner
	if r.counts == nil {
		r.counts = make([]*ledger.Counts, len(p.resources))
	}
	if r.counts[resource] == nil {
		r.counts[resource] = p.ledger.Count(p.resources[resource].Name, func(k *ledger.Knob) float64 { return p.ledger.Believed(k, r.now) })
	}
	return r.counts[resource]
}

// others returns the same for all knobs except those of the allocations. Stuck knobs cannot be set,
// and stay included.
func (r *decision) others(allocations []*allocation.Allocation, resource int) *ledger.Counts {
	c := r.believed(resource).Clone()
	for _, s := range allocations {
		if s.Index != resource {
			continue
		}
		for i := range s.Knobs {
			if k := &s.Knobs[i]; !k.Stuck {
				c.LeaveOut(k.Index())
			}
		}
	}
	for _, s := range r.allocations {
		for i := 0; s.Aim.Kept != "" && s.Aim.ByHost && s.Index == resource && i < len(s.Knobs); i++ { // others must leave room for what it takes back
			if k := &s.Knobs[i]; k.Held.Reserves {
				c.Least(k.Index(), k.Before())
			}
		}
	}
	return c
}

// idle returns the capacity of a resource that no knob is assumed to use.
func (r *decision) idle(resource int, knobs *ledger.Counts) float64 {
	return knobs.Left(r.planner.capacity(resource))
}

// capacity returns how much of a resource the pool has, from the configuration and the reports of
// its hosts.
func (p *Planner) capacity(resource int) float64 {
	of := &p.resources[resource]
	return p.ledger.Capacity(of.Name, of.Capacity)
}
