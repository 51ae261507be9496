package policy

import (
	"math"

	"github.com/trimtab/trimtab"
)

// MaxUnits bounds a problem, so that the solvers' integers cannot overflow.
const MaxUnits = 1 << 20

// Grain absorbs rounding when an amount is converted into units: 1e-9 of a unit.
const Grain = 1e-9

// UpUnits returns the least number of units that give at least v, at most
// MaxUnits.
func UpUnits(v, unit float64) int { return int(math.Min(math.Ceil(v/unit-Grain), MaxUnits)) }

// DownUnits returns how many whole units v contains, at most MaxUnits.
func DownUnits(v, unit float64) int { return int(math.Min(math.Floor(v/unit+Grain), MaxUnits)) }

// Demand is the estimate of the least allocation that meets an SLO, in units.
type Demand struct {
	// Upper is the least allocation whose lower bound meets the SLO, d̂ of Cilantro's figure 6;
	// the maximum if none does.
	Upper int
	// Explore is the allocation at which a report would be most informative about the demand, d̄
	// of (5): it maximises min(p_ucb − SLO, SLO − p_lcb); Upper if the demand is known to the
	// unit.
	Explore int
	// Mean is the least allocation whose mean meets the SLO; -1: none.
	Mean int
}

// DemandOf returns the demand by curve c for unit size unit (> 0), within [lo, hi] units. Below
// the first knot nothing was measured, so a demand is never less than that. It takes time linear in
// the knots.
func DemandOf(c *trimtab.Curve, slo, unit float64, lo, hi int) Demand {
	lower := func(b trimtab.Band) float64 { return b.Lower }
	mean := func(b trimtab.Band) float64 { return b.Mean }
	at, tells := explore(c, slo, unit, lo, hi)
	d := Demand{Upper: hi, Mean: -1, Explore: at}
	if a := c.Least(1, slo, lower); a >= 0 {
		d.Upper = min(max(UpUnits(a, unit), lo), hi)
		if !tells {
			d.Explore = d.Upper // it is known to the unit
		}
	}
	if a := c.Least(1, slo, mean); a >= 0 && UpUnits(a, unit) <= hi {
		d.Mean = max(UpUnits(a, unit), lo)
	}
	return d
}

// enough is the fraction of the greatest h that counts as equal to it: where a band is flat,
// rounding must not choose the present allocation, where the least can be learnt.
const enough = 0.9

// explore returns the least allocation whose h(a) = min(p_ucb(a) − SLO, SLO − p_lcb(a)) is nearly
// the greatest over the units in [lo, hi], and whether h is positive there: otherwise the SLO is
// in no band.
func explore(c *trimtab.Curve, slo, unit float64, lo, hi int) (at int, tells bool) {
	h := func(k int) float64 {
		b := c.Eval(float64(k) * unit)
		return math.Min(b.Upper-slo, slo-b.Lower)
	}
	var room [2 + 4*trimtab.MaxKnots]int // read off at every round
	candidates := turns(room[:0], c, slo, unit, lo, hi)
	best := math.Inf(-1)
	for _, k := range candidates {
		best = math.Max(best, h(k))
	}
	wanted := best
	if best > 0 {
		wanted *= enough
	}
	at = hi
	for _, k := range candidates {
		if k < at && h(k) >= wanted {
			at = k
		}
	}
	return at, best > 0
}

// turns appends to out the units in [lo, hi] where the h of [explore] can be greatest: between
// two knots h is the lesser of two lines, so that is at an end or beside their crossing.
func turns(out []int, c *trimtab.Curve, slo, unit float64, lo, hi int) []int {
	out = append(out, lo, hi)
	try := func(a float64) {
		for _, k := range []int{DownUnits(a, unit), UpUnits(a, unit)} {
			out = append(out, min(max(k, lo), hi))
		}
	}
	for i, k := range c.Knots {
		try(k.Allocation)
		if i == 0 {
			continue
		}
		p := c.Knots[i-1]
		// upper(t) + lower(t) = 2·slo is where the two lines cross.
		s0, s1 := p.Upper+p.Lower-2*slo, k.Upper+k.Lower-2*slo
		if s0 < 0 != (s1 < 0) && s0 != s1 {
			try(p.Allocation + s0/(s0-s1)*(k.Allocation-p.Allocation))
		}
	}
	return out
}

// Recommend returns the demand to plan with (Cilantro, equation 6),
//
//	clip(β·Upper + (1−β)·Explore, previous − step, previous + step),
//
// in whole units, rounded to the nearest.
func (d Demand) Recommend(beta float64, previous, step int) int {
	v := int(math.Round(beta*float64(d.Upper) + (1-beta)*float64(d.Explore)))
	return min(max(v, previous-step), previous+step)
}

func positive(v float64) bool { return v > 0 && !math.IsInf(v, 0) }
