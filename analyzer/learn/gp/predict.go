package gp

import (
	"math"
	"sort"

	"github.com/trimtab/trimtab"
)

// diminishing is how the mean falls below the visited range, as 2^(−δ d²) for d octaves: returns
// diminish, so that a little less than was ever tried hardly hurts, and half of it is .7 as good.
// Set by measurement: 0.25 is as good; a straight fall by half an octave is worse under much
// noise.
const diminishing = 0.5

// at returns the node interpolated at x, and on which side of the visited
// range x lies: -1, 0 or 1.
func (f *fit) at(x float64) (k node, side int) {
	i, n := f.index(x), len(f.nodes)
	switch {
	case i == n && x <= f.nodes[n-1].high:
		return f.nodes[n-1], 0
	case i == 0 && x >= f.nodes[0].low:
		return f.nodes[0], 0
	case i == n:
		return f.nodes[n-1], 1
	case f.nodes[i].X == x:
		return f.nodes[i], 0
	case i == 0:
		return f.nodes[0], -1
	}
	return f.between(&f.nodes[i-1], &f.nodes[i], x), 0
}

// index returns the first node that is not left of x. A curve is read off from
// left to right, so that where it was the last time is tried, and next to it.
func (f *fit) index(x float64) int {
	n := len(f.nodes)
	for i := f.latest; i <= min(n, f.latest+1); i++ {
		if (i == 0 || f.nodes[i-1].X < x) && (i == n || f.nodes[i].X >= x) {
			f.latest = i
			return i
		}
	}
	f.latest = sort.Search(n, func(i int) bool { return f.nodes[i].X >= x })
	return f.latest
}

// between interpolates. Where the curve is abrupt, its whole rise may be anywhere in between, so
// that the band is that of both ends.
func (f *fit) between(a, b *node, x float64) (k node) {
	switch {
	case x <= a.high:
		return *a
	case x >= b.low:
		return *b
	}
	t := (x - a.high) / (b.low - a.high)
	k.Between(&a.Node, &b.Node, x, t)
	k.way = b.way * t * (1 - t)
	if a.Observed && b.Observed {
		k.Lower -= b.abrupt * (k.Lower - min(a.Lower, b.Lower))
		k.Upper += b.abrupt * (max(a.Upper, b.Upper) - k.Upper)
	}
	return k
}

// bends returns the allocations at which the curve bends under a load: both ends of each narrow
// bin, and the points between bins.
func (f *fit) bends(load float64) []float64 {
	out := make([]float64, 0, 2*len(f.nodes))
	for i := range f.nodes {
		k := &f.nodes[i]
		out = append(out, load*math.Exp2(k.low))
		if k.high > k.low {
			out = append(out, load*math.Exp2(k.high))
		}
	}
	return out
}

// predict is Process.Predict.
func (f *fit) predict(allocation, load float64) trimtab.Band {
	x, l, ok := f.Place(allocation, load)
	if !ok || len(f.nodes) == 0 {
		return trimtab.Band{Lower: 0, Mean: 0.5, Upper: 1}
	}
	k, side := f.at(x)
	f.Shift(&k.Node, l)
	band := trimtab.Band{Lower: k.Lower, Mean: k.Mean, Upper: k.Upper}
	switch side {
	case -1:
		// Less than was ever given: at most as good as there, perhaps useless.
		band.Lower = 0
		d := k.X - x
		band.Mean *= math.Exp2(-diminishing * d * d)
	case 1:
		f.beyond(&band, x-k.X)
	}
	return band
}

// beyond extrapolates to more than was ever given, by so many octaves: at least as good, perhaps
// better. If the performance was falling, it may fall further, to 0.
func (f *fit) beyond(b *trimtab.Band, octaves float64) {
	if f.tail {
		b.Lower = 0
		return
	}
	b.Upper = f.Beyond(b.Upper, octaves)
}
