package planner

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/ledger"
)

// pending is a plan whose grows wait for the outcomes of its shrinks.
type pending struct {
	plan  trimtab.Plan // the first step
	grows []trimtab.Action
	// waits holds the hosts whose answer to the first step's shrinks is missing.
	waits map[string]bool
	until time.Time
}

// publish sends the first step of a decision. Grows follow when the answers
// are in; without shrinks, and with every host fenced, they go out at once.
func (p *Planner) publish(r *decision) []trimtab.Value {
	p.sequence++
	p.ledger.Issue(p.sequence, r.now)
	plan := trimtab.Plan{
		Pool: p.cfg.Pool, Epoch: p.epoch, Sequence: p.sequence, Step: 1, Time: r.now,
		Objective: p.cfg.Policy.Name(), Value: r.value, Gap: r.gap, Capacity: p.cfg.Capacity,
		Resource: p.cfg.Resource, Capacities: p.capacities(), Lease: trimtab.SecondsOf(p.cfg.Lease), Held: r.heldBack, Cause: r.cause, Applies: r.applies, Cut: r.cut,
		Audit: r.audit,
	}
	plan.Verdicts = p.takeVerdicts()
	if len(r.unmoved) > 0 {
		plan.Unmoved = r.unmoved
	}
	if len(plan.Held) == 0 {
		plan.Held = nil
	}
	plan.Actions = r.shrinks
	plan.Actions = append(plan.Actions, r.advice...)
	waits := map[string]bool{}
	for i := range r.shrinks {
		waits[r.shrinks[i].Host] = true
	}
	p.pending = &pending{plan: plan, grows: r.grows, waits: waits, until: r.now.Add(p.cfg.Confirm)}
	switch {
	case len(r.grows) == 0:
		plan.Last, p.pending = true, nil
	case len(waits) == 0 && !p.ledger.Unfenced(r.now):
		plan.Last, p.pending = true, nil
		plan.Actions = append(plan.Actions, p.fit(r.now, r.grows, plan)...)
	}
	return p.emit(&plan)
}

// capacities returns what the pool shares where it is more than one resource.
func (p *Planner) capacities() map[string]float64 {
	if len(p.resources) < 2 {
		return nil
	}
	all := make(map[string]float64, len(p.resources))
	for _, r := range p.resources {
		all[r.Name] = r.Capacity
	}
	return all
}

// emit records what a plan does and hands it out.
func (p *Planner) emit(plan *trimtab.Plan) []trimtab.Value {
	plan.Hosts = p.ledger.Hosts()
	id := plan.ID()
	var w *workload
	for i := range plan.Actions {
		a := &plan.Actions[i]
		p.counts.actions[action{a.Mode, a.Expect.Less(a.Set)}]++
		if w == nil || w.Name != a.Workload {
			w = p.byName[a.Workload]
		}
		if w == nil || a.Mode != trimtab.Act {
			continue
		}
		if d := direction(a); d != 0 {
			w.moved(p.index(a.Resource), d, plan.Time)
		}
		if a.Resource == p.cfg.Resource {
			w.expects(id, a)
		}
	}
	p.counts.plan(plan)
	if advises(plan) {
		p.recommended = append(p.recommended, plan)
		if len(p.recommended) > maxRecommended {
			p.recommended = slices.Delete(p.recommended, 0, 1)
		}
	}
	return []trimtab.Value{plan}
}

// direction returns where an action moves its workload: 1, -1, or 0 where it
// only brings an instance to where the others are.
func direction(a *trimtab.Action) int {
	if a.Of != nil {
		return cmp.Compare(a.Of.To, a.Of.From)
	}
	if a.Expect.Less(a.Set) {
		return 1
	}
	return -1
}

// maxRecommended bounds how many plans can still be applied by name.
const maxRecommended = 32

func advises(plan *trimtab.Plan) bool {
	for i := range plan.Actions {
		if plan.Actions[i].Mode == trimtab.Recommend {
			return true
		}
	}
	return false
}

// fit scales grows to what is free by the ledger and enters them there. What
// a knob has reserved already, by a grow that was not answered, is its own.
// Each resource is shared by itself: none of them can fund another.
func (p *Planner) fit(now time.Time, grows []trimtab.Action, plan trimtab.Plan) []trimtab.Action {
	out := p.fitOne(now, 0, grows, plan)
	for i := 1; i < len(p.resources); i++ {
		out = append(out, p.fitOne(now, i, grows, plan)...)
	}
	return out
}

// fitOne is fit for the grows of one resource.
func (p *Planner) fitOne(now time.Time, resource int, grows []trimtab.Action, plan trimtab.Plan) []trimtab.Action {
	id, of := ledger.StepID{Epoch: plan.Epoch, Sequence: plan.Sequence, Step: plan.Step}, p.resources[resource]
	reserved := p.ledger.Count(of.Name, func(k *ledger.Knob) float64 { return p.ledger.Reserve(k, now) })
	asks, knobs := make([]float64, 0, len(grows)), make([]*ledger.Knob, 0, len(grows))
	kept := make([]trimtab.Action, 0, len(grows))
	for i := range grows {
		a := &grows[i]
		if a.Resource != of.Name {
			continue
		}
		e := p.ledger.Knob(a.KnobID)
		if e == nil || e.Gone() || !e.Held.Now.Less(a.Set) || p.byName[a.Workload].released || !p.ledger.Fenced(e, now) {
			p.counts.dropped++
			continue
		}
		asks, knobs, kept = append(asks, max(0, a.Set.Value-reserved.Of(e.Place()))), append(knobs, e), append(kept, *a)
		kept[len(kept)-1].Expect = e.Held.Now
	}
	out := kept[:0]
	unit := of.Unit
	for i := range kept {
		if kept[i].Of != nil {
			unit = of.quantum()
			break
		}
	}
	left, spare := reserved.Room(), p.spare(now, resource, reserved)
	for i, got := range guard.Share(fitHosts(left, knobs, asks, unit), spare, unit) {
		a, e := kept[i], knobs[i]
		if spare < -grain*unit || left != nil && left[e.Site()] < -grain*unit {
			// It asks for nothing where an earlier plan may have raised it as far, but
			// what was free then is no longer.
			p.counts.dropped++
			continue
		}
		if got < asks[i] {
			set := a.Set.Value - asks[i] + got
			if a.Of != nil {
				of := *a.Of
				of.To *= set / a.Set.Value
				a.Of = &of
			}
			a.Set = trimtab.Units(set)
			a.Why.Binding = trimtab.Binding{Kind: trimtab.BindingCapacity, Detail: fmt.Sprintf("%v of %v was confirmed to be free", trimtab.Units(got), trimtab.Units(asks[i]))}
			p.counts.scaled++
		}
		if a.Set.Value-a.Expect.Value < unit/2 {
			p.counts.dropped++
			continue
		}
		e.Release(id, a.Set, now.Add(p.cfg.Lease+p.cfg.Confirm))
		out = append(out, a)
	}
	return out
}

// fitHosts cuts what grows of knobs ask for to what is left of each host that bounds
// them.
func fitHosts(left []float64, knobs []*ledger.Knob, asks []float64, unit float64) []float64 {
	if left == nil {
		return asks
	}
	on := make([][]int, len(left))
	for i, k := range knobs {
		on[k.Site()] = append(on[k.Site()], i)
	}
	out := slices.Clone(asks)
	for host, at := range on {
		if len(at) == 0 || math.IsInf(left[host], 1) {
			continue
		}
		of := make([]float64, len(at))
		for k, i := range at {
			of[k] = asks[i]
		}
		for k, got := range guard.Share(of, left[host], unit) {
			out[at[k]] = got
		}
	}
	return out
}

// release publishes the grows that wait, when every host has answered or the
// wait is over; then the round that was asked for meanwhile.
func (p *Planner) release(now time.Time) []trimtab.Value {
	w := p.pending
	if w == nil {
		return nil
	}
	waits := len(w.waits) > 0 || p.ledger.Unfenced(now)
	if waits && now.Before(w.until) {
		return nil
	}
	p.pending = nil
	plan := w.plan
	plan.Step, plan.Last, plan.Time = 2, true, now
	plan.Verdicts = nil
	plan.Held, plan.Unmoved, plan.Audit = maps.Clone(w.plan.Held), maps.Clone(w.plan.Unmoved), nil
	plan.Actions = p.fit(now, w.grows, plan)
	if waits {
		p.counts.unanswered++
	}
	out := p.emit(&plan)
	if c := p.applies; c != nil {
		p.applies = nil
		out = append(out, p.apply(now, c)...)
	}
	if p.wanted != nil && p.pending == nil {
		out = append(out, p.round(now, *p.wanted)...)
	}
	return out
}

// answer takes in an outcome. One that tells nothing new, as when it is delivered
// again, releases nothing: the next tick does.
func (p *Planner) answer(now time.Time, o *trimtab.Outcome) []trimtab.Value {
	if o.Pool != p.cfg.Pool {
		p.counts.ignored["outcome"]++
		return nil
	}
	news := p.ledger.Read(o)
	p.watch(now, o)
	if w := p.pending; w != nil && o.Epoch == w.plan.Epoch && o.Sequence == w.plan.Sequence && o.Step == w.plan.Step {
		news = news || w.waits[o.Host]
		delete(w.waits, o.Host)
	}
	if !news {
		return nil
	}
	return p.release(now)
}
