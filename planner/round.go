package planner

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/instances"
	"github.com/trimtab/trimtab/planner/issue"
	"github.com/trimtab/trimtab/planner/ledger"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/reason"
)

// round makes one decision and publishes its first step.
func (p *Planner) round(now time.Time, cause trimtab.Cause) []trimtab.Value {
	p.next, p.last, p.came = now.Add(p.cfg.Round), now, ""
	p.wanted = nil // this one sees what all others would
	p.gaps.Began()
	p.ledger.Prune(now, p.cfg.Lease)
	p.ledger.Watch(now)
	r := &decision{planner: p, now: now, cause: cause, heldBack: map[string]trimtab.Held{}}
	if p.issue.Paused() {
		r.cause = trimtab.Cause{Kind: codes.CausePaused}
		for _, w := range p.workloads {
			if w.Mode != trimtab.Off {
				r.heldBack[w.Name] = trimtab.Held{Code: codes.HeldPaused, Text: "paused"}
			}
		}
	} else {
		r.decide()
	}
	p.counts.rounds++
	if len(r.shrinks)+len(r.grows) > 0 {
		p.backoff = 0
	}
	return p.publish(now, issue.Decision{
		Plan:    trimtab.Plan{Lendable: r.lendable, Envelopes: r.within, Value: r.value, Gap: r.gap, Held: r.heldBack, Unmoved: r.unmoved, Alarms: alarmsOf(p), Cause: r.cause, Cut: r.cut, Audit: r.audit},
		Shrinks: r.shrinks, Grows: r.grows, Advice: r.advice,
	})
}

// decision is the state of one round until its plan.
type decision struct {
	planner     *Planner
	now         time.Time
	cause       trimtab.Cause
	allocations []*allocation.Allocation // in order of name, then of the resources
	counts      []*ledger.Counts         // see believed
	heldBack    map[string]trimtab.Held
	// unmoved says why those that are planned for keep what they have.
	unmoved map[string]trimtab.Held
	audit   *trimtab.Audit
	value   *float64
	gap     *float64
	cut     bool
	shrinks []trimtab.Action
	grows   []trimtab.Action
	advice  []trimtab.Action
	lent
	// begun raise instances that run and do not serve yet.
	begun []trimtab.Action
}

// decide runs the passes of a round, each on the results of those before. Each resource is
// planned separately; the passes for numbers of instances, limits by use, and envelopes handle
// only the first.
func (r *decision) decide() {
	for _, pass := range []func(){
		r.believe,                        // what is there, what is known of it, and who keeps no limit
		r.aim,                            // where each is to be in the end: shares, needs, or the objective
		r.each(r.guard),                  // a bounded step to there
		r.advise,                         // what use tells of those without a limit
		r.each(r.spread),                 // what each instance has of it
		r.count,                          // how many instances there are to be
		r.each(r.recall),                 // what lost hosts have lent
		r.each(r.starting),               // what instances get that do not serve yet
		r.inService,                      // how many requests are let in before them
		r.actions,                        // what is written, what is advised, and why
		r.lend,                           // within what hosts may move it
		func() { r.audit = fairness(r) }, // how fair that is
	} {
		pass()
	}
}

// each is a pass over all resources.
func (r *decision) each(of func(resource int)) func() {
	return func() {
		for i := range r.planner.resources {
			of(i)
		}
	}
}

// aiming is the pass that sets targets, counting the pass that sets numbers of instances. Both
// embed the round.
type (
	aiming   struct{ *decision }
	counting struct{ *decision }
)

// aim sets the targets: first of the workloads in mode act among themselves, then of all, so that
// recommendations take nothing from those in mode act.
func (r *decision) aim() {
	a := aiming{r}
	solve := a.solve
	if len(r.planner.resources) > 1 {
		solve = a.share
	}
	for _, in := range []func(*allocation.Allocation) bool{(*allocation.Allocation).Acts, func(*allocation.Allocation) bool { return true }} {
		if a.weigh(in) {
			continue
		}
		if !r.planner.serves() || !a.serve(in) {
			solve(in)
		}
	}
}

// count decides the numbers of instances.
func (r *decision) count() {
	c := counting{r}
	c.recordIdle()
	c.numbers()
	c.leaveZero()
}

// guard moves at most B units of one resource towards the targets, within the guard's bounds.
func (r *decision) guard(resource int) {
	p, of := r.planner, &r.planner.resources[resource]
	g := guard.Round{Now: r.now, Unit: of.Unit, Capacity: p.capacity(resource), Spare: r.idle(resource, r.believed(resource))}
	allocations := make([]*allocation.Allocation, 0, len(r.allocations))
	g.Workloads = make([]guard.Workload, 0, len(r.allocations))
	var worst [2]float64 // the least utility of those that are to rise, by side
	worst[0], worst[1] = math.Inf(1), math.Inf(1)
	for _, s := range r.allocations {
		if s.Index != resource {
			continue
		}
		allocations = append(allocations, s)
		if s.Kept != "" { // what others are raised by leaves room for that
			g.Spare -= s.Returns()
		}
		s.Want, s.Target = s.Now, s.Now
		switch {
		case s.Stays: // a share need be no whole unit
		case s.Open && s.Mode == trimtab.Recommend: // a limit is advised by what it uses: see use.go
		case s.Free:
			s.Target = float64(s.Aim) * of.Unit
			s.Want = of.StepTo(s.Now, s.Aim)
		default:
			if raised := r.fallback(s); raised > s.Now {
				s.Target, s.Want = raised, of.StepTo(s.Now, policy.DownUnits(raised, of.Unit))
			}
		}
		if allocation.Reserves(s) {
			s.Want = s.Target // few steps, and large ones
		}
		if s.Free && s.Want > s.Now {
			side, level := &worst[side(s)], s.UtilityAt(s.Now)
			if !p.traits.Weighs {
				level = -1 // who is worse off is a matter of entitlement, or the same for all
			}
			*side = math.Min(*side, level)
		}
	}
	for _, s := range allocations {
		g.Workloads = append(g.Workloads, s.Bounded(guard.Workload{
			Name: s.Name, Now: s.Now, Target: s.Target, Want: s.Want, Own: s.Knobs.Own(s.Now), Fresh: s.Free,
			Missing: s.Free && (s.Short || s.Misses() || s.Curve.Eval(s.Now).Mean < s.SLO),
			Meets:   s.Free && (s.Served || s.Curve.Eval(s.Target).Mean >= s.SLO),
			Harms:   s.Free && !s.Served && s.Curve.Eval(s.Target).Mean < s.SLO && worst[side(s)] >= s.UtilityAt(s.Now),
			Weighed: !s.Served, Safe: s.Safe, Changed: s.Changed(), Lack: s.Lack, Firing: s.Firing(),
			Advice: !s.Acts(), Last: s.State.Move, Lent: s.Lent(resource, s.Now), Returned: s.Returned,
		}))
	}
	for i, grant := range p.cfg.Guard.Apply(g) {
		allocations[i].Grant = grant
	}
}

// side returns 0 for mode act and 1 for recommendations.
func side(s *allocation.Allocation) int {
	if s.Acts() {
		return 0
	}
	return 1
}

// fallback returns what a workload without an estimate may be raised to: its declared default,
// after three rounds.
func (r *decision) fallback(s *allocation.Allocation) float64 {
	if s.Knobs[0].Held.Problem != "" || r.now.Sub(s.Fresh) < time.Duration(r.planner.cfg.HoldRounds)*r.planner.cfg.Round || s.Knobs.Unlimited() {
		return 0
	}
	return s.Knobs.Effective(func(i *instances.Instance) float64 { return min(s.State.Default, i.High) })
}

// actions makes the actions that give the instances their amounts.
func (r *decision) actions() {
	moves := map[*[]trimtab.Action]int{} // how many on each list
	for _, s := range r.allocations {
		for i := range s.Knobs {
			if to := r.list(s, &s.Knobs[i]); to != nil {
				moves[to]++
			}
		}
	}
	for _, l := range []*[]trimtab.Action{&r.shrinks, &r.grows, &r.advice} {
		*l = slices.Grow(*l, moves[l])
	}
	for _, s := range r.allocations {
		r.act(s)
		counting{r}.scale(s)
	}
	r.grows = append(r.grows, r.begun...)
}

// list returns the list for an instance's action; nil: it keeps its amount.
func (r *decision) list(s *allocation.Allocation, k *instances.Instance) *[]trimtab.Action {
	least := s.Of.Unit
	if len(s.Knobs) > 1 {
		least = s.Of.Quantum()
	}
	stays := !k.Moves(least) // a quantised knob is where it can be
	switch {
	case stays && !s.Recaps(k):
		return nil
	case !s.Writes():
		return &r.advice
	case trimtab.Units(k.Set).Less(k.Found) || s.Recaps(k) && (stays || s.Capped(k)): // a cap alone asks for nothing
		return &r.shrinks
	}
	return &r.grows
}

// act makes the actions of an allocation, or records why there is none. The first action carries
// what applies to all instances.
func (r *decision) act(s *allocation.Allocation) {
	var why trimtab.Reason
	var whole *trimtab.Whole
	var last *instances.Instance
	text := ""
	for i := range s.Knobs {
		k := &s.Knobs[i]
		to := r.list(s, k)
		if to == nil {
			continue
		}
		a := trimtab.Action{KnobID: k.KnobID, Expect: k.Found, Set: trimtab.Units(k.Set), Capped: s.Capped(k), Mode: s.ActionMode()}
		if last == nil {
			why = r.telling().Of(s)
			a.Why = why
		} else {
			a.Why = trimtab.Reason{Binding: why.Binding, NextCheck: why.NextCheck}
		}
		if n := len(s.Knobs); n > 1 {
			if whole == nil {
				whole = &trimtab.Whole{Instances: n, From: s.Now, To: s.Knobs.Set()}
			}
			if text == "" || last.Found != k.Found || last.Set != k.Set || last.Placed != k.Placed {
				text = reason.OfInstance(s, k, a.Why.Summary)
			}
			a.Of, a.Why.Summary = whole, text
			if last == nil {
				text = ""
			}
		}
		*to = append(*to, a)
		last = k
	}
	if last == nil && !s.Replicas.Moves() && s.Free { // else the reason is why it is held
		r.stays(s)
	}
}

// stays records why an allocation keeps what it has.
func (r *decision) stays(s *allocation.Allocation) {
	why := r.telling().Stays(s)
	if r.unmoved == nil {
		r.unmoved = map[string]trimtab.Held{}
	}
	if before, ok := r.unmoved[s.Name]; ok { // of another resource
		why = trimtab.Held{Code: before.Code, Text: before.Text + "; " + why.Text}
	}
	r.unmoved[s.Name] = why
}

// telling returns the round in the form that package reason reads.
func (r *decision) telling() reason.Round {
	p := r.planner
	return reason.Round{Now: r.now, Next: p.next, Objective: p.cfg.Policy.Name(), Several: len(p.resources) > 1, Expect: p.traits.Expect, All: r.allocations}
}
