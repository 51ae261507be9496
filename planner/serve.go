package planner

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab"
)

// Where the pool has enough for everybody, objectives that end at the SLO agree:
// everybody gets what it needs, and the rest is head-room,
//
//	need_j(θ) = min{a : E p_j(a, λ_j(θ)) >= SLO_j} + backlog_j / Drain
//	λ_j(θ)    = mean load + θ (its upper bound − mean),  θ in [0, 1]
//	θ*        = the greatest θ with Σ_j need_j(θ) <= R
//	a_j       = need_j(θ*) · R / Σ need(θ*)              within its bounds
//
// so that nobody keeps for a load that may come what others need now. While
// everybody has what it needs, nobody is moved. Where not even the needs at the
// mean loads fit, the policy decides.

// Server is a policy whose objective has no use for more than every SLO.
type Server interface {
	// Serves reports whether it has no use for more.
	Serves() bool
}

// drain is in how many seconds a backlog is to be worked off.
const drain = 10.0

// serves reports whether the pool is planned for by need.
func (p *Planner) serves() bool {
	s, ok := p.cfg.Policy.(Server)
	return ok && s.Serves() && p.ends && !p.cfg.Guard.Disabled && len(p.resources) == 1
}

// ends reports whether neither the utility nor the operator's own worth rises
// beyond the SLO.
func (w *workload) ends() bool {
	if w.Mode == trimtab.Off {
		return true
	}
	for _, of := range []func(float64) float64{w.Utility, w.Worth} {
		if of != nil && of(16*w.SLO) > of(w.SLO)+1e-6 {
			return false
		}
	}
	return true
}

// needAt returns the need in units under the load of θ.
func (s *seat) needAt(theta float64) int {
	c := s.estimate.Curve
	if l := s.estimate.Load; l != nil && c.Load == l.Upper && l.Mean < l.Upper {
		c = c.At(l.Mean + theta*(l.Upper-l.Mean))
	}
	waiting := 0.0
	if b := s.estimate.Backlog; b != nil {
		waiting = *b / drain
	}
	a := expected(c, s.SLO)
	if s.capped() {
		a = math.Max(a, growth*s.now) // how much is asked of it cannot be seen
	}
	return min(max(upUnits(a+waiting, s.of.Unit), s.lo), s.hi)
}

// growth is how much more a workload may need that its quota stops, while what
// is asked of it is not known.
const growth = 1.5

// capped reports whether its quota stops a workload that misses its SLO and of
// which nobody knows what waits.
func (s *seat) capped() bool {
	e := s.estimate
	if e.Backlog != nil || e.Performance == nil || *e.Performance >= s.SLO {
		return false
	}
	used, throttled := inputOf(e, trimtab.Usage), inputOf(e, trimtab.Throttled)
	return used >= 0.9*s.now && throttled >= 0.5
}

// inputOf returns an input of an estimate; -1: missing.
func inputOf(e *trimtab.Estimate, q trimtab.Quantity) float64 {
	for _, in := range e.Inputs {
		if in.Name == string(q) && in.Missing == "" {
			return in.Value
		}
	}
	return -1
}

// expected returns the least allocation whose mean performance meets the SLO,
// or, where none does, the least that comes within 2% of the best.
func expected(c *trimtab.Curve, slo float64) float64 {
	mean := func(b trimtab.Band) float64 { return b.Mean }
	if a := leastReaching(c, slo, mean); a >= 0 {
		return a
	}
	return leastReaching(c, 0.98*c.Knots[len(c.Knots)-1].Mean, mean)
}

// serve sets the aims of the free seats that are in by their needs, and reports
// whether the pool has enough for them.
func (r *decision) serve(in func(*seat) bool) bool {
	asked, mine, fresh := r.asked(in)
	if !fresh {
		return true
	}
	units := max(0, downUnits(r.planner.idle(r.now, 0, mine), r.planner.cfg.Unit))
	need := make([]int, len(asked))
	at := func(theta float64) int {
		total := 0
		for i, s := range asked {
			need[i] = s.needAt(theta)
			total += need[i]
		}
		return total
	}
	if at(0) > units {
		return false
	}
	theta := 1.0
	if at(1) > units {
		low, high := 0.0, 1.0
		for range 10 {
			if theta = (low + high) / 2; at(theta) <= units {
				low = theta
			} else {
				high = theta
			}
		}
		theta = low
		at(theta)
	}
	aims := spread(need, asked, units)
	short, held := false, 0
	for i, s := range asked {
		held += upUnits(s.now, s.of.Unit)
		s.safe = float64(s.needAt(1)) * s.of.Unit
		s.short = s.now < float64(need[i])*s.of.Unit-grain
		short = short || s.short
	}
	for i, s := range asked {
		if s.solved {
			continue
		}
		s.solved, s.served, s.aim, s.binding = true, true, aims[i], "need"
		if !short && held <= units {
			s.aim, s.binding = upUnits(s.now, s.of.Unit), "nothing is needed"
		}
	}
	return true
}

// spread shares units in proportion to the needs, each within its bounds and
// with no less than it needs.
func spread(need []int, seats []*seat, units int) []int {
	share := func(f float64) (aims []int, total int) {
		aims = make([]int, len(need))
		for i, n := range need {
			aims[i] = min(max(int(math.Floor(f*float64(n)+grain)), n), max(seats[i].hi, n))
			total += aims[i]
		}
		return aims, total
	}
	low, high := 1.0, float64(units)+1
	for range 50 {
		if f := (low + high) / 2; func() bool { _, total := share(f); return total <= units }() {
			low = f
		} else {
			high = f
		}
	}
	aims, _ := share(low)
	return slices.Clip(aims)
}
