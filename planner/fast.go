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

// contributionRounds is for how many rounds contributions stay valid without an update.
const contributionRounds = 20

// maxHeard bounds how many knobs are remembered for which a fast loop asked for a round.
const maxHeard = 1024

// hear starts the rounds that fast loops ask for: once for each knob and ask, and once per gap
// and workload, as alerts do.
func (p *Planner) hear(now time.Time, h *trimtab.Holding) (out []trimtab.Value) {
	if p.cfg.Fast == nil {
		return nil
	}
	for i := range h.Targets {
		t := &h.Targets[i]
		if t.Fast == nil || t.Fast.Ask == nil || p.byName[t.Workload] == nil || p.heard[t.KnobID] == t.Fast.Ask.Number {
			continue
		}
		if p.heard == nil || len(p.heard) > maxHeard {
			p.heard = map[trimtab.KnobID]int{}
		}
		a := t.Fast.Ask
		p.heard[t.KnobID] = a.Number
		if !p.leading {
			continue
		}
		out = append(out, p.ask(now, "fast loop "+t.Workload, trimtab.Cause{Kind: codes.CauseLoan, Ref: a.Cause, Workload: t.Workload,
			Text: fmt.Sprintf("for %.3g s on host %s, wants %.3g cores", float64(a.Lasts), t.Host, a.Want)})...)
	}
	return out
}

// lent is what a plan says to hosts that move quotas: the envelopes of knobs that keep their
// value, and how much each host may lend beyond the targets.
type lent struct {
	within   []trimtab.Enveloped
	lendable map[string]float64
}

// lending is the pass that finds it out.
type lending struct {
	*decision
	lent
}

// lend says within what hosts may move quotas until the next plan.
func (r *decision) lend() {
	pass := lending{decision: r}
	pass.envelopes()
	r.lent = pass.lent
}

// envelopes adds to the actions the range in which hosts may move the knobs until the next plan,
// updates the envelopes of knobs that keep their value, and sets what may be lent.
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
	for i := range r.advice { // a plan says one thing of a knob
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
	// Several hosts lend only what their own workloads do not use: what a host has beyond its
	// targets would have to be returned before another could get it.
	if hosts := p.ledger.Hosts(); len(hosts) == 1 && left > 0 {
		r.lendable = map[string]float64{hosts[0]: left}
	}
}

// noEnvelopes ends the envelopes that an earlier configuration gave to knobs of which
// the plan says nothing else.
func (r *lending) noEnvelopes(free func(trimtab.KnobID) bool) {
	for _, s := range r.allocations {
		for i := range s.Knobs {
			if k := &s.Knobs[i]; s.Index == 0 && inForce(k) != nil && free(k.KnobID) {
				r.within = append(r.within, trimtab.Enveloped{KnobID: k.KnobID, At: k.Found})
			}
		}
	}
}

// inForce is the envelope that a host says it follows; nil: none.
func inForce(k *instances.Instance) *trimtab.Envelope {
	f := k.Held.Fast
	if f == nil || f.Envelope.Floor == f.Envelope.Ceiling && f.Off != "" {
		return nil
	}
	return &f.Envelope
}

// keep updates the envelope of a knob that keeps its value, if it differs.
func (r *lending) keep(s *allocation.Allocation, k *instances.Instance) {
	if k.Found.Unlimited || k.Stuck || k.Held.Problem != "" || k.Found.Value <= 0 {
		return
	}
	if f := k.Held.Fast; f != nil && inForce(k) == nil {
		return // the host said why it takes none
	}
	want := r.envelope(s, k, k.Found.Value)
	if has := inForce(k); has == nil || !envelope.Alike(has, want) {
		r.within = append(r.within, trimtab.Enveloped{KnobID: k.KnobID, At: k.Found, Envelope: want})
	}
}

// envelope returns the range in which one instance may be moved, at a target.
func (r *lending) envelope(s *allocation.Allocation, k *instances.Instance, target float64) *trimtab.Envelope {
	return r.planner.cfg.Fast.Of(envelope.Instance{Target: target, Least: math.Max(k.Held.Min, k.Held.Floor), Most: k.High, Stall: s.Stall.Seconds, SLO: s.SLO})
}

// correct adjusts how long a workload may stall, by the time that contributions leave it and by
// how many of its requests were late.
func (r *lending) correct(s *allocation.Allocation) {
	earlier := 0.0
	for i := range s.Knobs {
		if e := inForce(&s.Knobs[i]); e != nil {
			earlier = math.Max(earlier, float64(e.Budget))
		}
	}
	s.Stall.Follow(r.now, contributionRounds*r.planner.cfg.Round, earlier)
	s.Stall.Correct(s.Estimate, s.SLO)
}

// contribute reads what each component adds to a tail: the time that its SLO leaves is divided
// among the workloads that serve its requests, and one that adds more gets less (see
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
		w.Stall.Tell(now, c.Workload, v)
	}
}
