package walk

import (
	"math"

	"github.com/trimtab/trimtab/analyzer/learn"
)

// Node is one point of a fitted curve.
type Node struct {
	X    float64 // log2(a/l)
	Load float64 // ln of the load that was seen here
	Mean, Lower, Upper,
	Variance float64
	// Unit is the variance of a report of weight 1 and dispersion 1.
	Unit float64
	// Phi is the dispersion here: how much noisier reports are than Unit and
	// their weights say.
	Phi float64
	// Observed tells bins from points inside gaps.
	Observed bool
}

// Between sets k to the point at x, at the fraction t of the way from a to b.
func (k *Node) Between(a, b *Node, x, t float64) {
	k.X = x
	k.Load = a.Load + t*(b.Load-a.Load)
	k.Mean = a.Mean + t*(b.Mean-a.Mean)
	k.Lower = a.Lower + t*(b.Lower-a.Lower)
	k.Upper = a.Upper + t*(b.Upper-a.Upper)
	k.Variance = a.Variance + t*(b.Variance-a.Variance)
	k.Unit = a.Unit + t*(b.Unit-a.Unit)
	k.Phi = a.Phi + t*(b.Phi-a.Phi)
	k.Observed = false
}

// Fit has the values that are common to all nodes of a fitted curve.
type Fit struct {
	Mode Mode
	// Z is how many standard deviations the bounds are away.
	Z float64
	// Top is the highest mean of a bin: the scale of a number, 1 for fractions.
	Top float64
	// Effect is the shift of the performance, in units of Scale, per unit of
	// ln(load) from LoadRef at equal a/l, and EffectVar its variance.
	Effect, EffectVar, LoadRef float64
	// Phi and Serial are the dispersion and its factor for serial correlation.
	Phi, Serial float64

	// load is the latest argument of Place: curves are read at many allocations under one load,
	// and logarithms are half of the cost.
	load, log2, ln float64
}

// UnitAt is the variance of a report of weight 1 and dispersion 1 at p:
// binomial for fractions, the declared one, or in proportion to p squared.
func (f *Fit) UnitAt(p float64) float64 {
	switch f.Mode {
	case Fraction:
		p = max(1e-6, min(1-1e-6, p))
		return p * (1 - p)
	case Declared:
		return 1
	}
	p = max(p, 0.05*f.Top)
	return p * p
}

// Floor keeps a fraction's noise at or above the binomial one.
func (f *Fit) Floor(phi float64) float64 {
	if f.Mode == Fraction {
		return max(1, phi)
	}
	return max(1e-9, phi)
}

// Scale returns the change of performance for a load effect of 1, where the noise is unit and the
// height p: none where a fraction is 0 or 1, in proportion to a number.
func (f *Fit) Scale(unit, p float64) float64 {
	if f.Mode == Fraction {
		return 2 * math.Sqrt(unit)
	}
	return max(p, 0.05*f.Top)
}

// Off returns the possible effect of the load l (ln) at k, which was measured at another load.
func (f *Fit) Off(k *Node, l float64) float64 {
	return f.Scale(k.Unit, k.Mean) * Within(l-k.Load, 3)
}

// Shift moves k to the load l (ln), by the effect of the load at equal a/l, and widens it by the
// uncertainty of that effect.
func (f *Fit) Shift(k *Node, l float64) {
	scale := f.Scale(k.Unit, k.Mean)
	move := f.Effect * scale * Within(l-f.LoadRef, 3)
	off := scale * Within(l-k.Load, 3)
	wider := f.Z * (math.Sqrt(k.Variance+f.EffectVar*off*off) - math.Sqrt(k.Variance))
	top := f.Mode.Highest()
	k.Mean = max(0, min(top, k.Mean+move))
	k.Lower = max(0, min(k.Mean, k.Lower+move-wider))
	k.Upper = min(top, max(k.Mean, k.Upper+move+wider))
}

// Place returns x and ln(load) of an allocation under a load, both >= 0 and finite, else not ok:
// the left end without an allocation; the right end and the load of reference without load.
func (f *Fit) Place(allocation, load float64) (x, l float64, ok bool) {
	if !(allocation >= 0 && load >= 0) || math.IsInf(allocation, 0) || math.IsInf(load, 0) {
		return 0, 0, false
	}
	switch {
	case allocation > 0 && load > 0:
		if load != f.load {
			f.load, f.log2, f.ln = load, math.Log2(load), math.Log(load)
		}
		return math.Log2(allocation) - f.log2, f.ln, true
	case allocation > 0:
		return math.Inf(1), f.LoadRef, true
	}
	return math.Inf(-1), f.LoadRef, true
}

// Beyond returns the most that a performance of at most upper, here, can be with so many octaves
// more than were ever given: 1 for a fraction; a number without known range grows at most like
// the allocation.
func (f *Fit) Beyond(upper, octaves float64) float64 {
	if f.Mode == Fraction {
		return 1
	}
	return min(learn.Greatest, upper*math.Exp2(min(64, octaves)))
}

// Within clips v to [-reach, reach].
func Within(v, reach float64) float64 { return max(-reach, min(reach, v)) }
