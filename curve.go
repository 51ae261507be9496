package trimtab

import (
	"math"
	"slices"
	"sort"

	"github.com/trimtab/trimtab/internal/valid"
)

// MaxKnots bounds a [Curve].
const MaxKnots = 64

// Band is a performance with its confidence bounds, 0 <= Lower <= Mean <= Upper.
type Band struct {
	Lower float64 `json:"lower"`
	Mean  float64 `json:"mean"`
	Upper float64 `json:"upper"`
}

// validate checks that the bounds are around the mean.
func (b *Band) validate(what string) error {
	for _, v := range []float64{b.Lower, b.Mean, b.Upper} {
		if err := valid.NonNegative(what, v); err != nil {
			return err
		}
	}
	if b.Lower > b.Mean || b.Mean > b.Upper {
		return Invalidf("%.300s: bounds cross: %v, %v, %v", what, b.Lower, b.Mean, b.Upper)
	}
	return nil
}

// Knot is one point of a curve.
type Knot struct {
	Allocation float64 `json:"allocation"`
	Band
}

// Curve is performance as a function of the allocation at one load, as data:
// the planner never sees the learner that made it. Between knots it is
// linear; outside them it is flat. Knots ascend strictly in allocation.
type Curve struct {
	// Load is the load, in requests per second, for which the curve is valid: the upper bound for
	// the coming round.
	Load float64 `json:"load"`
	// Level is the confidence of [Lower, Upper] at each point, in (0, 1).
	Level float64 `json:"level"`
	// Headroom is how many requests per second count in addition to the load: the curve's
	// coordinate is the allocation per load + Headroom. 0 if the service scales in proportion to
	// its load.
	Headroom float64 `json:"headroom,omitempty"`
	Knots    []Knot  `json:"knots"`
}

// Eval returns the band at allocation a, in the units of the knots. An empty
// curve knows nothing: it returns the zero Band.
func (c *Curve) Eval(a float64) Band {
	n := len(c.Knots)
	if n == 0 {
		return Band{}
	}
	i := sort.Search(n, func(i int) bool { return c.Knots[i].Allocation >= a })
	switch i {
	case 0:
		return c.Knots[0].Band
	case n:
		return c.Knots[n-1].Band
	}
	p, q := c.Knots[i-1], c.Knots[i]
	t := (a - p.Allocation) / (q.Allocation - p.Allocation)
	mix := func(x, y float64) float64 { return x + t*(y-x) }
	return Band{mix(p.Lower, q.Lower), mix(p.Mean, q.Mean), mix(p.Upper, q.Upper)}
}

// Least returns the least allocation from the first knot on at which the bound reaches
// level, where allocations count times scale; -1 when it never does.
func (c *Curve) Least(scale, level float64, bound func(Band) float64) float64 {
	for i := range c.Knots {
		k := &c.Knots[i]
		v := bound(k.Band)
		if v < level {
			continue
		}
		if i == 0 {
			return k.Allocation * scale
		}
		before := &c.Knots[i-1]
		u, from, to := bound(before.Band), before.Allocation*scale, k.Allocation*scale
		return from + (level-u)/(v-u)*(to-from)
	}
	return -1
}

// At returns the curve under another load, in requests per second: performance
// is a function of the allocation per load + Headroom, p(a, l) = f(a/(l + h)),
// as in Cilantro 4.2 with h = 0.
func (c *Curve) At(load float64) *Curve {
	scale, ok := c.Scale(load)
	if !ok {
		return c
	}
	out := *c
	out.Load, out.Knots = load, slices.Clone(c.Knots)
	for i := range out.Knots {
		out.Knots[i].Allocation *= scale
	}
	return &out
}

// Scale returns the factor by which [Curve.At] multiplies allocations; 1 and
// false where At returns the curve as it is. It spares a copy of the knots.
func (c *Curve) Scale(load float64) (factor float64, ok bool) {
	from, to := c.Load+c.Headroom, load+c.Headroom
	if !(from > 0) || !(to > 0) || load == c.Load {
		return 1, false
	}
	return to / from, true
}

// Validate checks order, ranges and finiteness. A curve needs one knot.
func (c *Curve) Validate() error {
	if len(c.Knots) == 0 || len(c.Knots) > MaxKnots {
		return Invalidf("curve: %d knots, want 1 to %d", len(c.Knots), MaxKnots)
	}
	for _, v := range []float64{c.Load, c.Headroom} {
		if err := valid.NonNegative("curve load", v); err != nil {
			return err
		}
	}
	if !(c.Level > 0 && c.Level < 1) {
		return Invalidf("curve level %v: want a number in (0, 1)", c.Level)
	}
	before := -math.SmallestNonzeroFloat64
	for i := range c.Knots {
		// In one look, since each curve is looked at where it is made, sent and used: what is
		// not a number compares with none, and what is infinite is beyond the greatest.
		k := &c.Knots[i]
		if !(k.Allocation > before && k.Allocation <= math.MaxFloat64 &&
			k.Lower >= 0 && k.Mean >= k.Lower && k.Upper >= k.Mean && k.Upper <= math.MaxFloat64) {
			return k.wrong(before)
		}
		before = k.Allocation
	}
	return nil
}

// wrong returns what is wrong with a knot after one at the allocation before.
func (k *Knot) wrong(before float64) error {
	for _, v := range []float64{k.Allocation, k.Lower, k.Mean, k.Upper} {
		if err := valid.NonNegative("curve knot", v); err != nil {
			return err
		}
	}
	if k.Allocation <= before {
		return Invalidf("curve: knot at %v after %v", k.Allocation, before)
	}
	return Invalidf("curve: bounds cross at %v: %v, %v, %v", k.Allocation, k.Lower, k.Mean, k.Upper)
}
