// Package need computes what workloads need, and what each gets if a pool has enough for all.
//
// In that case all objectives that end at the SLO agree: every workload gets what it needs, and the
// leftover capacity is headroom. All needs are computed with the same confidence κ in [−1, 1],
//
//	need_j(κ) = min{a : p_j(a) >= SLO_j}
//	            κ >= 0: of the mean of the curve, under the mean load and κ of
//	                    the way from there to its upper bound
//	            κ < 0:  of |κ| of the way from the mean of the curve to its upper
//	                    bound, under the mean load
//	κ*        = the greatest κ with Σ_j need_j(κ) + drained backlogs <= R
//	a_j       = (need_j(κ*) + backlog_j / drain) · R / Σ      within its bounds
//
// so that no workload keeps a reserve against future load, or against uncertainty, that others need
// now. If not even the needs at the upper bounds of the curves (κ = −1) fit, the pool is certainly
// too small, and [Divide] says so: the objective decides.
package need

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

const (
	// enough is the κ at which the need of a workload must be met for it to be left alone. Between
	// that and κ*, which it gets once anything moves, lies the hysteresis. Tuned with `trimtab-lab
	// sim services --seeds 20`, peaks and noise by spans: .7, .35 and 0 give 95.5, 95.3 and 94.2%
	// of requests in time, and 32, 21 and 11 moves in 6 minutes in which nothing changes.
	enough = 0.35
	// counted is the window, in seconds, over which requests are assumed to be counted for a load.
	// The real window is 5 s while the load moves, 30 s while it is steady. With 5, a service with
	// 306 millicores at 27 requests/s got its rise two seconds later.
	counted = 20
)

// Workload is the input for one workload.
type Workload struct {
	// Curve is its performance over the allocation, at [trimtab.Curve.Load]; Load its forecast,
	// nil: unknown; SLO the performance asked for.
	Curve *trimtab.Curve
	Load  *trimtab.LoadForecast
	SLO   float64
	// Has is its allocation and Unit the size of a unit, both in the resource's unit.
	Has, Unit float64
	// Min and Max bound its allocation, in units. Easy is the most that it gets with headroom.
	Min, Max, Easy int
	// Least is a lower bound of its need, in the resource's unit. Starves: it needs at least what
	// it has, plus Waiting units to work off its backlog.
	Least   float64
	Starves bool
	Waiting int
	// Enough is the fraction of its need from which on it counts as having enough. Known: there are
	// enough measurements to say that it has too little.
	Enough float64
	Known  bool
}

// At returns the need in units at confidence κ, without its backlog.
func (w *Workload) At(confidence float64) int {
	load := w.Curve.Load
	if l := w.Load; l != nil && load == l.Upper && l.Mean < l.Upper {
		load = l.Mean + math.Max(0, confidence)*(l.Upper-l.Mean)
	}
	return w.reaching(load, math.Max(0, -confidence))
}

// Under returns the need in units, by the mean of the curve, under the given load, at most the
// upper bound of its forecast.
func (w *Workload) Under(load float64) int {
	if l := w.Load; !(l != nil && w.Curve.Load == l.Upper && load > 0 && load < l.Upper) {
		load = w.Curve.Load
	}
	return w.reaching(load, 0)
}

// Beyond returns the need in units, by the mean of the curve, under any load.
func (w *Workload) Beyond(load float64) int { return w.reaching(load, 0) }

// reaching returns the fewest units at which the curve reaches the SLO under a load. optimism in
// [0, 1] moves from the curve's mean to its upper bound.
func (w *Workload) reaching(load, optimism float64) int {
	scale, _ := w.Curve.Scale(load)
	need := policy.UpUnits(math.Max(expected(w.Curve, scale, w.SLO, optimism), w.Least), w.Unit)
	if w.Starves { // it would starve even more with less
		need = max(need, policy.UpUnits(w.Has, w.Unit))
	}
	return min(max(need, w.Min), w.Max)
}

// expected returns the least allocation whose performance meets the SLO, read between the mean
// (optimism 0) and the upper bound (1) of the curve, or, if none does, the least that comes
// within 2% of the best. The curve's allocations are multiplied by scale: see
// [trimtab.Curve.Scale].
func expected(c *trimtab.Curve, scale, slo, optimism float64) float64 {
	of := func(b trimtab.Band) float64 { return b.Mean + optimism*(b.Upper-b.Mean) }
	if a := c.Least(scale, slo, of); a >= 0 {
		return a
	}
	return c.Least(scale, 0.98*of(c.Knots[len(c.Knots)-1].Band), of)
}

// Deficit returns how much less it has than it needs under the load just measured, in standard errors
// of that load.
func (w *Workload) Deficit() float64 {
	l := w.Load
	if l == nil || w.Has <= 0 || !w.Known {
		return 0
	}
	need := min(max(w.At(0), w.Under(l.Now))+w.Waiting, w.Max)
	noise := 1 / math.Sqrt(math.Max(counted*l.Now, 1))
	return math.Max(0, (w.Enough*float64(need)*w.Unit-policy.Grain)/w.Has-1) / noise
}

// Behind returns the curve of a workload that spends part of its allocation (cores) on its backlog:
// the curve shifted to the right by cores, at most by half of what the load needs.
func Behind(c *trimtab.Curve, cores float64) *trimtab.Curve {
	cores = math.Min(cores, 0.5*expected(c, 1, c.Knots[len(c.Knots)-1].Mean, 0))
	out := *c
	out.Knots = slices.Clone(c.Knots)
	for i := range out.Knots {
		out.Knots[i].Allocation += cores
	}
	return &out
}
