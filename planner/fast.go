package planner

import (
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/stall"
)

// Fast says within what hosts may move quotas between rounds. Its zero values stand for
// the defaults.
type Fast struct {
	// Floor is the least of a workload's target that is never lent, in (0, 1]. Default 0.3.
	Floor float64
	// Ceiling is the most of its target that it may borrow up to, >= 1. Default 4.
	Ceiling float64
	// Budget is the longest time that a workload may stand still in a period of 100 ms, in
	// seconds. Less is readier, and costs more. Default 0.07.
	Budget float64
	// Burst is how much of its target a workload may save in the kernel, in [0, 1].
	Burst float64
}

const (
	defaultFloor, defaultCeiling, defaultBudget = 0.3, 4.0, stall.Most
	// contributionRounds is for how many rounds contributions count that are not told again.
	contributionRounds = 20
	// lateShare of the error budget is what stalls beyond the budget may take.
	lateShare = 0.6
	// sameEnvelope is the relative difference that is not worth an envelope.
	sameEnvelope = 0.04
)

// hear starts the rounds that fast loops ask for: once per knob and ask, and once per gap
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
		if p.heard == nil || len(p.heard) > maxGroups {
			p.heard = map[trimtab.KnobID]int{}
		}
		a := t.Fast.Ask
		p.heard[t.KnobID] = a.Number
		if !p.counts.leading {
			continue
		}
		out = append(out, p.ask(now, "fast loop "+t.Workload, trimtab.Cause{Kind: trimtab.CauseLoan, Ref: a.Cause, Workload: t.Workload,
			Text: fmt.Sprintf("for %.3g s on host %s, wants %.3g cores", float64(a.Lasts), t.Host, a.Want)})...)
	}
	return out
}

// envelopes adds to the actions within what hosts may move the knobs until the next plan,
// gives those that stay an envelope where theirs is another, and says what may be lent.
func (r *decision) envelopes() {
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
	for _, s := range r.seats {
		if s.resource != 0 || !s.acts() {
			continue
		}
		r.correct(s)
		for i := range s.knobs {
			k := &s.knobs[i]
			a := moved[k.KnobID]
			if a == nil {
				if !advised[k.KnobID] {
					r.keep(s, k)
				}
				continue
			}
			a.Envelope = r.envelope(s, k, a.Set.Value)
			if a.Set.Less(a.Expect) && a.Envelope.Borrow {
				// What is taken can be borrowed back at once, until the next round.
				a.Envelope.Ceiling = math.Max(a.Envelope.Ceiling, math.Min(k.most, or(p.cfg.Fast.Ceiling, defaultCeiling)*k.now))
			}
			left -= math.Max(0, k.set-k.now)
		}
	}
	// Several hosts lend only what their own workloads do not use: what a host may have
	// beyond its targets would have to be taken back before another may have it.
	if hosts := p.ledger.Hosts(); len(hosts) == 1 && left > 0 {
		r.lendable = map[string]float64{hosts[0]: left}
	}
}

// noEnvelopes ends the envelopes that an earlier configuration gave to knobs of which
// the plan says nothing else.
func (r *decision) noEnvelopes(free func(trimtab.KnobID) bool) {
	for _, s := range r.seats {
		for i := range s.knobs {
			if k := &s.knobs[i]; s.resource == 0 && inForce(k) != nil && free(k.KnobID) {
				r.within = append(r.within, trimtab.Enveloped{KnobID: k.KnobID, At: k.found})
			}
		}
	}
}

// inForce is the envelope that a host says it follows; nil: none.
func inForce(k *instance) *trimtab.Envelope {
	f := k.Held.Fast
	if f == nil || f.Envelope.Floor == f.Envelope.Ceiling && f.Off != "" {
		return nil
	}
	return &f.Envelope
}

// keep gives a knob that stays its envelope, where it has another or none.
func (r *decision) keep(s *seat, k *instance) {
	if k.found.Unlimited || k.stuck || k.Held.Problem != "" || k.found.Value <= 0 {
		return
	}
	if f := k.Held.Fast; f != nil && inForce(k) == nil {
		return // the host said why it takes none
	}
	want := r.envelope(s, k, k.found.Value)
	if has := inForce(k); has == nil || !alike(has, want) {
		r.within = append(r.within, trimtab.Enveloped{KnobID: k.KnobID, At: k.found, Envelope: want})
	}
}

// alike reports whether a host loses nothing by keeping the envelope that it has.
func alike(a, b *trimtab.Envelope) bool {
	near := func(x, y float64) bool { return math.Abs(x-y) <= sameEnvelope*math.Max(x, y)+1e-9 }
	return a.Lend == b.Lend && a.Borrow == b.Borrow && near(a.Floor, b.Floor) && near(a.Target, b.Target) && near(a.Ceiling, b.Ceiling) &&
		near(float64(a.Budget), float64(b.Budget)) && near(a.Late, b.Late) && near(a.Burst, b.Burst)
}

// envelope is what one instance may be moved within, at a target. What the instance may
// have at most bounds the ceiling, what it must have the floor.
func (r *decision) envelope(s *seat, k *instance, target float64) *trimtab.Envelope {
	f := r.planner.cfg.Fast
	e := &trimtab.Envelope{
		Floor: math.Min(target, math.Max(math.Max(k.Held.Min, k.Held.Floor), or(f.Floor, defaultFloor)*target)), Target: target,
		Ceiling: math.Max(target, math.Min(k.most, or(f.Ceiling, defaultCeiling)*target)),
		Budget:  trimtab.Seconds(math.Min(s.stall.Seconds, or(f.Budget, defaultBudget))), Late: s.late(),
		Lend: true, Borrow: true, Burst: f.Burst * target,
	}
	return e
}

// late is the share of the time that a workload may stand still beyond its budget.
func (s *seat) late() float64 {
	if s.SLO >= 1 {
		return lateShare / 100
	}
	return math.Min(0.05, lateShare*(1-s.SLO))
}

// correct moves how long a workload may stand still by what contributions leave it and by what
// was late of its requests.
func (r *decision) correct(s *seat) {
	earlier := 0.0
	for i := range s.knobs {
		if e := inForce(&s.knobs[i]); e != nil {
			earlier = math.Max(earlier, float64(e.Budget))
		}
	}
	s.stall.Follow(r.now, contributionRounds*r.planner.cfg.Round, earlier)
	s.stall.Correct(s.estimate, s.SLO)
}

// contribute takes in what each component adds to a tail: the time that its SLO leaves is
// divided among the workloads that serve its requests, and less goes to one that adds
// more (see [trimtab.Contributions.Budgets]).
func (p *Planner) contribute(now time.Time, c *trimtab.Contributions) {
	if p.cfg.Fast == nil {
		return
	}
	least := map[*workload]float64{}
	for _, b := range c.Budgets() {
		for _, w := range p.byComponent[b.Component] {
			if v, known := least[w]; !known || float64(b.Time) < v {
				least[w] = float64(b.Time)
			}
		}
	}
	for w, v := range least {
		w.stall.Tell(now, c.Workload, v)
	}
}

// or is v, or what stands for 0.
func or(v, otherwise float64) float64 {
	if v == 0 {
		return otherwise
	}
	return v
}
