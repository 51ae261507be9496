package console

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
)

// keptDecisions bounds the decisions kept per workload.
const keptDecisions = 200

// maxWorkloads bounds what discovery may add to the view.
const maxWorkloads = 10000

// Config is what the view knows before anything arrives.
type Config struct {
	Pool      string
	Resource  string
	Capacity  float64
	Objective string
	Round     time.Duration
	Workloads []Workload
}

// Workload is the declared part of one workload.
type Workload struct {
	Name  string
	Mode  trimtab.Mode
	Class trimtab.Class
	// SLO is for people, as in "95% under 200ms"; Target is the performance
	// asked for.
	SLO    string
	Target float64
	// Share tells that performance is a share of requests, in [0, 1].
	Share bool
	// Utility maps performance to [0, 1]; nil shows none.
	Utility func(float64) float64
}

// View is the read model: the newest value of everything. It is safe for
// concurrent use.
type View struct {
	mu        sync.Mutex
	config    Config
	workloads map[string]*state
	holdings  map[string]*trimtab.Holding
	plan      *trimtab.Plan
	acting    *trimtab.Plan
	// applied is the newest answer to an apply command, all steps in one.
	applied *trimtab.Plan
	rounds  int
	changed chan struct{}
}

// state is all that is known of one workload.
type state struct {
	Workload
	declared  bool
	estimate  *trimtab.Estimate
	held      *trimtab.Held
	host      string
	decisions []*Decision
	heldWhy   string
	heldAt    time.Time
}

// NewView returns an empty view.
func NewView(c Config) *View {
	v := &View{workloads: map[string]*state{}, holdings: map[string]*trimtab.Holding{}, changed: make(chan struct{})}
	v.Configure(c)
	return v
}

// Configure replaces the declared part and keeps what was seen.
func (v *View) Configure(c Config) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.config = c
	for _, s := range v.workloads {
		s.declared = false
		s.Workload = Workload{Name: s.Name, Mode: trimtab.Off}
	}
	for _, w := range c.Workloads {
		s := v.state(w.Name)
		s.Workload, s.declared = w, true
	}
}

// state returns the workload's state, making it, or nil when there are too many.
func (v *View) state(name string) *state {
	s := v.workloads[name]
	if s == nil && len(v.workloads) < maxWorkloads {
		s = &state{Workload: Workload{Name: name, Mode: trimtab.Off}}
		v.workloads[name] = s
	}
	return s
}

// Follow subscribes to everything that is shown. stop ends it.
func (v *View) Follow(ctx context.Context, b bus.Bus) (stop func(), err error) {
	return bus.Follow(ctx, b, true, v.Observe,
		trimtab.KindEstimate, trimtab.KindHolding, trimtab.KindPlan, trimtab.KindOutcome)
}

// Observe takes one value into the view.
func (v *View) Observe(value trimtab.Value) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch x := value.(type) {
	case *trimtab.Estimate:
		if s := v.state(x.Workload); s != nil {
			s.estimate = x
		}
	case *trimtab.Holding:
		v.holdings[x.Host] = x
		for i := range x.Targets {
			if s := v.state(x.Targets[i].Target); s != nil {
				s.held, s.host = &x.Targets[i], x.Host
			}
		}
	case *trimtab.Plan:
		v.observePlan(x)
	case *trimtab.Outcome:
		v.observeOutcome(x)
	default:
		return
	}
	close(v.changed)
	v.changed = make(chan struct{})
}

func (v *View) observePlan(p *trimtab.Plan) {
	if v.plan != nil && (p.Epoch < v.plan.Epoch || p.Epoch == v.plan.Epoch && p.Sequence < v.plan.Sequence) {
		return
	}
	v.plan = p
	if strings.HasPrefix(p.Cause, "apply ") {
		all := *p
		if a := v.applied; a != nil && p.Step > 1 && a.Epoch == p.Epoch && a.Sequence == p.Sequence {
			all.Actions = slices.Concat(a.Actions, p.Actions)
		}
		v.applied = &all
	}
	if len(p.Actions) > 0 {
		v.acting = p
	}
	if p.Step == 1 {
		v.rounds++
		for _, s := range v.workloads {
			s.heldWhy = ""
		}
	}
	for name, why := range p.Held {
		if s := v.state(name); s != nil {
			s.heldWhy, s.heldAt = why, p.Time
		}
	}
	for _, a := range p.Actions {
		s := v.state(a.Target)
		if s == nil {
			continue
		}
		s.decisions = append(s.decisions, &Decision{Plan: p.ID(), Epoch: p.Epoch, Sequence: p.Sequence, Step: p.Step, Time: p.Time, Cause: p.Cause, Action: a})
		if n := len(s.decisions) - keptDecisions; n > 0 {
			s.decisions = slices.Delete(s.decisions, 0, n)
		}
	}
}

func (v *View) observeOutcome(o *trimtab.Outcome) {
	for _, r := range o.Results {
		s := v.workloads[r.Target]
		if s == nil {
			continue
		}
		for _, d := range slices.Backward(s.decisions) {
			if d.Epoch == o.Epoch && d.Sequence == o.Sequence && d.Step == o.Step && d.Action.Host == o.Host && d.Action.Resource == r.Resource {
				// A copy: readers may still hold the decision without a result.
				done := *d
				done.Result, done.Took = &r, o.Took
				s.decisions[slices.Index(s.decisions, d)] = &done
				break
			}
		}
	}
}

// Changed returns a channel that is closed at the next change.
func (v *View) Changed() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}

// Status returns the pool as it is at now, worst workload first.
func (v *View) Status(now time.Time) Status {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := Status{Pool: v.config.Pool, Resource: v.config.Resource, Objective: v.config.Objective,
		Capacity: v.config.Capacity, Time: now, Workloads: []Row{}}
	if v.plan != nil {
		s.Plan, s.Cause, s.Value = v.plan.ID(), v.plan.Cause, v.plan.Value
	}
	for _, h := range v.holdings {
		s.Paused = s.Paused || h.Paused
		left := h.LeaseLeft - trimtab.SecondsOf(now.Sub(h.Time))
		s.LeaseLeft = max(s.LeaseLeft, left)
		for _, t := range h.Targets {
			s.Allocated.Unlimited = s.Allocated.Unlimited || t.Now.Unlimited
			s.Allocated.Value += t.Now.Value
		}
	}
	// What adding leaves behind a billionth is no news.
	s.Allocated.Value = math.Round(s.Allocated.Value*1e9) / 1e9
	if s.Allocated.Unlimited {
		s.Allocated = trimtab.Unlimited()
	}
	for _, w := range v.workloads {
		s.Workloads = append(s.Workloads, w.row(now, v.config.Round))
	}
	slices.SortFunc(s.Workloads, func(a, b Row) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(worth(&a), worth(&b)), strings.Compare(a.Name, b.Name))
	})
	return s
}

// rank orders rows, worst first: those that miss their SLO, those whose data
// or knob is in trouble, the good ones, those that nobody plans for.
func rank(r *Row) int {
	switch stateClass(r.State) {
	case "bad":
		if r.State == stateMisses {
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

// Discovered is the state of a workload that was found in the spans and is not
// in the configuration.
const Discovered = "discovered, not configured"

// States of a workload. Those that end in ": " are followed by the reason.
const (
	stateOK       = "ok"
	stateOff      = "watched only"
	stateMisses   = "misses its SLO"
	stateLearning = "learning"
	stateWaiting  = "waiting for data"
	stateHeld     = "held: "
	stateStale    = "stale: "
	stateKnob     = "knob: "
)

func (s *state) row(now time.Time, round time.Duration) Row {
	r := Row{Name: s.Name, Mode: s.Mode, Class: s.Class, SLO: s.SLO, Share: s.Share, Host: s.host, State: s.stateAt(now, round)}
	if s.Target > 0 {
		r.SLOTarget = &s.Target
	}
	if e := s.estimate; e != nil {
		r.Performance, r.Latency, r.Reports = e.Performance, e.Latency, e.Reports
		age := trimtab.SecondsOf(now.Sub(e.Time))
		r.Age = &age
		if e.Load != nil {
			r.Load, r.LoadUpper = &e.Load.Now, &e.Load.Upper
		}
		if s.Utility != nil && e.Performance != nil {
			u := s.Utility(*e.Performance)
			r.Utility = &u
		}
	}
	if h := s.held; h != nil {
		r.Knob = h.Knob
		if !h.Since.IsZero() || h.Problem == "" {
			// A knob that could never be read has not 0: it is not known.
			r.Allocation = &h.Now
		}
	}
	if n := len(s.decisions); n > 0 {
		d := s.decisions[n-1]
		r.Decision, r.Target, r.Demand = d, d.Action.Why.Target, d.Action.Why.Demand
	}
	return r
}

// stateAt says in words how the workload is; what needs a person comes first.
func (s *state) stateAt(now time.Time, round time.Duration) string {
	e := s.estimate
	planned := s.declared && s.Mode != trimtab.Off
	switch {
	case s.declared && s.held != nil && s.held.Problem != "":
		return stateKnob + s.held.Problem
	case !s.declared && e != nil:
		return Discovered
	case e == nil && planned && s.heldWhy != "" && s.heldWhy != "no estimate":
		return stateHeld + s.heldWhy
	case e == nil:
		return stateWaiting
	case round > 0 && now.Sub(e.Time) > 3*round+5*time.Second:
		return stateStale + "nothing for " + Age(trimtab.SecondsOf(now.Sub(e.Time)))
	case e.Hold != "" && s.declared:
		return stateHeld + e.Hold
	case planned && s.Target > 0 && e.Performance != nil && *e.Performance < s.Target:
		return stateMisses
	case planned && e.Curve == nil:
		return stateLearning
	case planned && s.heldWhy != "":
		return stateHeld + s.heldWhy
	case !planned:
		return stateOff
	}
	return stateOK
}

// stateClass sorts states by what they ask of a person: "ok", "note" (look
// when there is time), "bad" (look now), "quiet" (nobody plans for it).
func stateClass(s string) string {
	switch {
	case s == stateOK:
		return "ok"
	case s == stateOff || s == Discovered:
		return "quiet"
	case s == stateMisses || strings.HasPrefix(s, stateKnob) || strings.HasPrefix(s, stateStale):
		return "bad"
	}
	return "note"
}

// Applied returns the plan that answered the command to apply the named one,
// or nil while there is none.
func (v *View) Applied(plan string) *trimtab.Plan {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.applied == nil || !strings.HasPrefix(v.applied.Cause+" ", "apply "+plan+" ") {
		return nil
	}
	return v.applied
}

// Rounds returns how many plans were seen.
func (v *View) Rounds() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.rounds
}

// LastPlan returns the newest plan that asked for something; while there was
// none, the newest plan, which says why; nil before the first.
func (v *View) LastPlan() *trimtab.Plan {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.acting == nil {
		return v.plan
	}
	return v.acting
}
