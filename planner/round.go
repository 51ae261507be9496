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
	p.wanted = nil // this round covers every earlier request
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
	// unmoved says why workloads that are planned for keep their allocation.
	unmoved map[string]trimtab.Held
	audit   *trimtab.Audit
	value   *float64
	gap     *float64
	cut     bool
	shrinks []trimtab.Action
	grows   []trimtab.Action
	advice  []trimtab.Action
	lent
	// begun has the actions that raise instances which run and do not serve yet.
	begun []trimtab.Action
}

// decide runs the passes of a round in order; each uses the results of those before it. Each
// resource is planned separately. The passes for numbers of instances, limits from usage, and
// envelopes handle only the first resource.
func (r *decision) decide() {
	for _, pass := range []func(){
		r.believe,                         // current allocations, estimates, and which workloads stay without a limit
		r.aim,                             // targets: by weight, by need, or by the objective
		r.each(r.guard),                   // a bounded step towards the target
		r.advise,                          // limits from measured use, for workloads in mode recommend
		r.each(r.spread),                  // the amount of each instance
		r.count,                           // the number of instances
		r.each(r.recall),                  // what lost hosts have lent
		r.each(r.starting),                // amounts of instances that do not serve yet
		func() { limiting{r}.requests() }, // limits of requests
		func() { limiting{r}.memory() },   // memory limits that no pool shares
		r.actions,                         // actions and advice, with reasons
		r.lend,                            // ranges in which hosts may move quotas
		func() { r.audit = fairness(r) },  // fairness of the allocations
	} {
		pass()
	}
}

// each returns a pass that runs of for every resource.
func (r *decision) each(of func(resource int)) func() {
	return func() {
		for i := range r.planner.resources {
			of(i)
		}
	}
}

// aiming is the pass that sets targets, counting the pass that sets numbers of instances, limiting
// the one that limits requests in service. They embed the state of the round.
type (
	aiming   struct{ *decision }
	counting struct{ *decision }
	limiting struct{ *decision }
)

// aim sets the targets: first for the workloads in mode act alone, then for all, so that
// recommendations take nothing from workloads in mode act.
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

// guard moves each allocation of one resource by at most B units towards its target, within the
// limits of the guard.
func (r *decision) guard(resource int) {
	p, of := r.planner, &r.planner.resources[resource]
	g := guard.Round{Now: r.now, Unit: of.Unit, Capacity: p.capacity(resource), Spare: r.idle(resource, r.believed(resource))}
	allocations := make([]*allocation.Allocation, 0, len(r.allocations))
	g.Workloads = make([]guard.Workload, 0, len(r.allocations))
	var worst [2]float64 // least utility among the workloads to be raised, for mode act and mode recommend
	worst[0], worst[1] = math.Inf(1), math.Inf(1)
	for _, s := range r.allocations {
		if s.Index != resource {
			continue
		}
		allocations = append(allocations, s)
		allocation.Regain(s, r.now, p.cfg.HoldFor())
		if s.Aim.Kept != "" { // the capacity that it takes back is not free for others
			g.Spare -= s.Returns()
		}
		s.Step.Want, s.Step.Target = s.Now, s.Now
		switch {
		case s.Aim.Stays: // its share by weight need not be a whole number of units
		case s.Status.Open && s.Mode == trimtab.Recommend: // its limit follows from its use: see use.go
		case s.Status.Free:
			s.Step.Target = float64(s.Aim.Units) * of.Unit
			s.Step.Want = of.StepTo(s.Now, s.Aim.Units)
		default:
			if raised := r.fallback(s); raised > s.Now {
				s.Step.Target, s.Step.Want = raised, of.StepTo(s.Now, policy.DownUnits(raised, of.Unit))
			}
		}
		if allocation.Reserves(s) {
			s.Step.Want = s.Step.Target // few large steps, since each change of a reservation is costly
		}
		if s.Status.Free && s.Step.Want > s.Now {
			side, level := &worst[side(s)], s.UtilityAt(s.Now)
			if !p.traits.Weighs {
				level = -1 // without weighing, utilities do not say who is worse off
			}
			*side = math.Min(*side, level)
		}
	}
	for _, s := range allocations {
		g.Workloads = append(g.Workloads, s.Bounded(guard.Workload{
			Name: s.Name, Now: s.Now, Target: s.Step.Target, Want: s.Step.Want, Own: s.Knobs.Own(s.Now), Fresh: s.Status.Free,
			Missing: s.Status.Free && (s.Aim.Short || s.Misses() || s.Curve.Eval(s.Now).Mean < s.SLO),
			Meets:   s.Status.Free && (s.Aim.Served || s.Curve.Eval(s.Step.Target).Mean >= s.SLO),
			Harms:   s.Status.Free && !s.Aim.Served && s.Curve.Eval(s.Step.Target).Mean < s.SLO && worst[side(s)] >= s.UtilityAt(s.Now),
			Weighed: !s.Aim.Served, Safe: s.Aim.Safe, Changed: s.Changed(), Deficit: s.Aim.Deficit, Firing: s.Firing(),
			Advice: !s.Acts(), Last: s.State.Move, Lent: s.Lent(resource, s.Now), Returned: s.Returned,
		}))
	}
	for i, grant := range p.cfg.Guard.Apply(g) {
		allocations[i].Step.Grant = grant
	}
}

// side returns 0 for mode act and 1 for recommendations.
func side(s *allocation.Allocation) int {
	if s.Acts() {
		return 0
	}
	return 1
}

// fallback returns the amount up to which a workload without a good estimate may be raised: its
// declared default after HoldRounds rounds, else 0.
func (r *decision) fallback(s *allocation.Allocation) float64 {
	if !allocation.Unknown(s, r.now, r.planner.cfg.HoldFor()) {
		return 0
	}
	return s.Knobs.Effective(func(i *instances.Instance) float64 { return min(s.State.Default, i.High) })
}

// actions appends the actions that give each instance its amount.
func (r *decision) actions() {
	moves := map[*[]trimtab.Action]int{} // number of actions per list
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

// list returns the list to which an instance's action belongs, or nil if the instance keeps its
// amount.
func (r *decision) list(s *allocation.Allocation, k *instances.Instance) *[]trimtab.Action {
	least := s.Resource.Unit
	if len(s.Knobs) > 1 {
		least = s.Resource.Quantum()
	}
	stays := !k.Moves(least) // a knob that only takes certain values is as near as it can be
	switch {
	case stays && !s.Recaps(k):
		return nil
	case !s.Writes():
		return &r.advice
	case trimtab.Units(k.Set).Less(k.Found) || s.Recaps(k) && (stays || s.Capped(k)): // a change of the cap alone takes no capacity
		return &r.shrinks
	}
	return &r.grows
}

// act appends the actions of an allocation, or records why there is none. The first action carries
// the part of the reason that applies to all instances.
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
			why = r.reasons().Of(s)
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
	if last == nil && !s.Replicas.Moves() && s.Status.Free { // a held allocation has its reason already
		r.stays(s)
	}
}

// stays records why an allocation is not changed.
func (r *decision) stays(s *allocation.Allocation) {
	why := r.reasons().Stays(s)
	if r.unmoved == nil {
		r.unmoved = map[string]trimtab.Held{}
	}
	if before, ok := r.unmoved[s.Name]; ok { // the workload has a reason for another resource
		why = trimtab.Held{Code: before.Code, Text: before.Text + "; " + why.Text}
	}
	r.unmoved[s.Name] = why
}

// reasons returns the state of the round in the form that package reason needs.
func (r *decision) reasons() reason.Round {
	p := r.planner
	return reason.Round{Now: r.now, Next: p.next, Objective: p.cfg.Policy.Name(), Several: len(p.resources) > 1, Expect: p.traits.Expect, All: r.allocations}
}
