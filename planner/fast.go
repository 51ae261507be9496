package planner

import (
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/envelope"
	"github.com/trimtab/trimtab/planner/instances"
)

// contributionRounds is the number of rounds after which contributions that were not updated become
// stale.
const contributionRounds = 20

// maxFastRequests bounds the number of knobs for which the planner remembers the last request of a fast
// loop.
const maxFastRequests = 1024

// observeFast starts the rounds that fast loops ask for: once for each request of a knob, and at most once
// per gap and workload, as for alerts.
func (p *Planner) observeFast(now time.Time, h *trimtab.Holding) (out []trimtab.Value) {
	if p.cfg.Fast == nil {
		return nil
	}
	for i := range h.Targets {
		t := &h.Targets[i]
		if t.Fast == nil || t.Fast.Ask == nil || p.byName[t.Workload] == nil || p.fastRequests[t.KnobID] == t.Fast.Ask.Number {
			continue
		}
		if p.fastRequests == nil || len(p.fastRequests) > maxFastRequests {
			p.fastRequests = map[trimtab.KnobID]int{}
		}
		a := t.Fast.Ask
		p.fastRequests[t.KnobID] = a.Number
		if !p.leading {
			continue
		}
		out = append(out, p.ask(now, "fast loop "+t.Workload, trimtab.Cause{Kind: codes.CauseLoan, Ref: a.Cause, Workload: t.Workload,
			Text: fmt.Sprintf("for %.3g s on host %s, wants %.3g cores", float64(a.Lasts), t.Host, a.Want)})...)
	}
	return out
}

// lent is the part of a plan for hosts that move CPU quotas between plans: the envelopes of knobs
// that keep their value, and how many cores each host may lend beyond its targets.
type lent struct {
	within   []trimtab.Enveloped
	lendable map[string]float64
}

// lending is the pass that computes lent.
type lending struct {
	*decision
	lent
}

// lend sets the ranges within which hosts may move quotas until the next plan.
func (r *decision) lend() {
	pass := lending{decision: r}
	pass.envelopes()
	r.lent = pass.lent
}

// envelopes adds to each action the range in which its host may move the knob until the next plan,
// updates the envelopes of knobs that keep their value, and sets how much may be lent.
func (r *lending) envelopes() {
	p := r.planner
	if p.resources[0].Name != trimtab.CPU {
		return
	}
	moved, advised := map[trimtab.KnobID]*trimtab.Action{}, map[trimtab.KnobID]bool{}
	for _, list := range [][]trimtab.Action{r.shrinks, r.grows} {
		for i := range list {
			moved[list[i].KnobID] = &list[i]
		}
	}
	for i := range r.advice { // a plan has at most one entry per knob
		advised[r.advice[i].KnobID] = true
	}
	if p.cfg.Fast == nil {
		r.noEnvelopes(func(id trimtab.KnobID) bool { return moved[id] == nil && !advised[id] })
		return
	}
	left := r.idle(0, r.believed(0))
	for _, s := range r.allocations {
		if s.Index != 0 || !s.Acts() {
			continue
		}
		r.correct(s)
		for i := range s.Knobs {
			k := &s.Knobs[i]
			a := moved[k.KnobID]
			if a == nil {
				if !advised[k.KnobID] {
					r.keep(s, k)
				}
				continue
			}
			a.Envelope = r.envelope(s, k, a.Set.Value)
			if a.Set.Less(a.Expect) {
				p.cfg.Fast.Back(a.Envelope, k.Has, k.High)
			}
			left -= math.Max(0, k.Set-k.Has)
		}
	}
	// With several hosts, each lends only what its own workloads do not use: capacity lent beyond
	// the targets of one host would have to be returned before a workload on another could get it.
	if hosts := p.ledger.Hosts(); len(hosts) == 1 && left > 0 {
		r.lendable = map[string]float64{hosts[0]: left}
	}
}

// noEnvelopes ends envelopes that an earlier configuration gave, for knobs without another entry in
// the plan.
func (r *lending) noEnvelopes(free func(trimtab.KnobID) bool) {
	for _, s := range r.allocations {
		for i := range s.Knobs {
			if k := &s.Knobs[i]; s.Index == 0 && inForce(k) != nil && free(k.KnobID) {
				r.within = append(r.within, trimtab.Enveloped{KnobID: k.KnobID, At: k.Found})
			}
		}
	}
}

// inForce returns the envelope that a host reports it follows, or nil.
func inForce(k *instances.Instance) *trimtab.Envelope {
	f := k.Held.Fast
	if f == nil || f.Envelope.Floor == f.Envelope.Ceiling && f.Off != "" {
		return nil
	}
	return &f.Envelope
}

// keep updates the envelope of a knob that keeps its value, if the envelope differs from the one in
// force.
func (r *lending) keep(s *allocation.Allocation, k *instances.Instance) {
	if k.Found.Unlimited || k.Stuck || k.Held.Problem != "" || k.Found.Value <= 0 {
		return
	}
	if f := k.Held.Fast; f != nil && inForce(k) == nil {
		return // the host reported why it accepts no envelope
	}
	want := r.envelope(s, k, k.Found.Value)
	if has := inForce(k); has == nil || !envelope.Alike(has, want) {
		r.within = append(r.within, trimtab.Enveloped{KnobID: k.KnobID, At: k.Found, Envelope: want})
	}
}

// envelope returns the range around target in which a host may move the quota of one instance.
func (r *lending) envelope(s *allocation.Allocation, k *instances.Instance, target float64) *trimtab.Envelope {
	return r.planner.cfg.Fast.Of(envelope.Instance{Target: target, Least: math.Max(k.Held.Min, k.Held.Floor), Most: k.High, Stall: s.History.Stall.Seconds, SLO: s.SLO})
}

// correct adjusts the time that the quota of a workload may throttle it, from the time that
// contributions leave it and from the share of its requests that were late.
func (r *lending) correct(s *allocation.Allocation) {
	earlier := 0.0
	for i := range s.Knobs {
		if e := inForce(&s.Knobs[i]); e != nil {
			earlier = math.Max(earlier, float64(e.Budget))
		}
	}
	s.History.Stall.Follow(r.now, contributionRounds*r.planner.cfg.Round, earlier)
	s.History.Stall.Correct(s.Estimate, s.SLO)
}

// contribute reads what each component adds to the tail latency. The time that the SLO leaves is
// divided among the workloads that serve the requests; a workload that adds more gets less (see
// [colocation.Contributions.Budgets]).
func (p *Planner) contribute(now time.Time, c *colocation.Contributions) {
	if p.cfg.Fast == nil {
		return
	}
	least := map[*allocation.Workload]float64{}
	for _, b := range c.Budgets() {
		for _, w := range p.byComponent[b.Component] {
			if v, known := least[w]; !known || float64(b.Time) < v {
				least[w] = float64(b.Time)
			}
		}
	}
	for w, v := range least {
		w.History.Stall.Record(now, c.Workload, v)
	}
}
