package planner

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
)

// A group without a limit may use all that the host has, and uses what it has work for: while
// others want their limits, the kernel gives it its part by weight. Where it is not to get a
// limit in this round, because nothing is known of it, an alert on it fires or it is in mode
// recommend, it takes of the pool
//
//	takes = max(min, min(use, entitlement))    entitlement: its part of the pool by weight
//
// with its use as last measured; not known, it is the entitlement. What it uses beyond that
// others leave idle. What is left is planned for the others. One that is about to get a limit counts as
// its max, as for everything that bounds a step: until it has the limit nobody is raised for it.

// opens finds out which workloads keep no limit, and what they take.
func (r *decision) opens() {
	p := r.planner
	const at = 0
	if p.resources[at].Name != trimtab.CPU {
		return
	}
	var entitled map[string]float64
	seats := make(map[*workload]*seat, len(r.seats))
	for _, s := range r.seats {
		if s.resource == at {
			seats[s.workload] = s
		}
	}
	for _, w := range p.workloads {
		knobs := p.ledger.Of(w.Name, trimtab.CPU)
		for _, k := range knobs {
			k.Takes = nil
		}
		s := seats[w]
		if w.dials[at] == nil || s != nil && !r.keepsOpen(s) || w.dials[at].justLowered(r.now, r.planner.cfg.Lease+r.planner.cfg.Confirm) {
			continue
		}
		if entitled == nil && len(knobs) > 0 {
			entitled = r.entitlements()
		}
		each := r.takes(w, at, entitled[w.Name]) / math.Max(1, float64(len(knobs)))
		for _, k := range knobs {
			k.Takes = &each
		}
		if s != nil {
			s.open = true
		}
	}
}

// keepsOpen reports whether a seat has no limit and gets none in this round.
func (r *decision) keepsOpen(s *seat) bool {
	return s.knobs.Unlimited() && (!s.free || !s.acts() || s.firing() && !r.planner.cfg.Guard.Disabled)
}

// justLowered reports whether a plan gave it a limit that may still be carried out, for so long.
func (d *dial) justLowered(now time.Time, within time.Duration) bool {
	return d.move.Direction < 0 && now.Sub(d.move.At) <= within
}

// takes is what a workload takes of the pool that has no limit on the CPU time it may use.
// entitled is its part of the pool by weight.
func (r *decision) takes(w *workload, resource int, entitled float64) float64 {
	takes := entitled
	if use, known := w.used(r.now, r.planner.cfg.StaleAfter); known {
		takes = math.Min(takes, use)
	}
	return math.Max(w.dials[resource].Min, takes)
}

// used is the CPU time that a workload was last measured to use, in cores; false: not known.
// stale is the age at which that is forgotten.
func (w *workload) used(now time.Time, stale time.Duration) (cores float64, known bool) {
	e := w.estimate
	if e == nil || e.Validate() != nil {
		return 0, false
	}
	for _, in := range e.Inputs {
		if in.Name == string(trimtab.Usage) && in.Missing == "" && in.Value >= 0 {
			age := now.Sub(e.Time) + in.Age.Duration()
			return in.Value, age <= stale && age >= -stale
		}
	}
	return 0, false
}
