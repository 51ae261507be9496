package gp

import (
	"math"

	"github.com/trimtab/trimtab"
)

// at returns the node interpolated at x, and on which side of the visited
// range x lies: -1, 0 or 1.
func (f *fit) at(x float64) (k node, side int) {
	i, n := 0, len(f.nodes)
	for j := n; i < j; {
		if h := (i + j) / 2; f.nodes[h].x >= x {
			j = h
		} else {
			i = h + 1
		}
	}
	switch {
	case i == n && x <= f.nodes[n-1].high:
		return f.nodes[n-1], 0
	case i == 0 && x >= f.nodes[0].low:
		return f.nodes[0], 0
	case i == n:
		return f.nodes[n-1], 1
	case f.nodes[i].x == x:
		return f.nodes[i], 0
	case i == 0:
		return f.nodes[0], -1
	}
	return f.between(&f.nodes[i-1], &f.nodes[i], x), 0
}

// between interpolates. Where the curve is abrupt, it may take its whole rise
// anywhere on the way, so that the band is that of both ends.
func (f *fit) between(a, b *node, x float64) node {
	switch {
	case x <= a.high:
		return *a
	case x >= b.low:
		return *b
	}
	t := (x - a.high) / (b.low - a.high)
	k := node{
		x:        x,
		load:     a.load + t*(b.load-a.load),
		mean:     a.mean + t*(b.mean-a.mean),
		lower:    a.lower + t*(b.lower-a.lower),
		upper:    a.upper + t*(b.upper-a.upper),
		variance: a.variance + t*(b.variance-a.variance),
		unit:     a.unit + t*(b.unit-a.unit),
		phi:      a.phi + t*(b.phi-a.phi),
		way:      b.way * t * (1 - t),
	}
	if a.observed && b.observed {
		k.lower -= b.abrupt * (k.lower - min(a.lower, b.lower))
		k.upper += b.abrupt * (max(a.upper, b.upper) - k.upper)
	}
	return k
}

// predict is Process.Predict.
func (f *fit) predict(allocation, load float64) trimtab.Band {
	valid := allocation >= 0 && load >= 0 && !math.IsInf(allocation, 0) && !math.IsInf(load, 0)
	if len(f.nodes) == 0 || !valid {
		return trimtab.Band{Lower: 0, Mean: 0.5, Upper: 1}
	}
	x, l := math.Inf(-1), f.loadRef
	switch {
	case allocation > 0 && load > 0:
		x, l = math.Log2(allocation)-math.Log2(load), math.Log(load)
	case allocation > 0:
		x = math.Inf(1)
	}
	k, side := f.at(x)
	f.shift(&k, l)
	band := trimtab.Band{Lower: k.lower, Mean: k.mean, Upper: k.upper}
	switch side {
	case -1:
		// Less than was ever given: at most as good as there, perhaps useless.
		band.Lower = 0
		band.Mean *= math.Exp2(x - k.x)
	case 1:
		f.beyond(&band, x-k.x)
	}
	return band
}

// beyond is more than was ever given, by so many octaves: at least as good,
// perhaps perfect; a number without known range grows at most like the
// allocation. Where the performance was falling, it may fall on to nothing.
func (f *fit) beyond(b *trimtab.Band, octaves float64) {
	if f.tail {
		b.Lower = 0
		return
	}
	if f.mode == fraction {
		b.Upper = 1
		return
	}
	b.Upper = min(greatest, max(b.Mean, b.Upper*math.Exp2(min(64, octaves))))
}

// shift moves k to the load l (ln), by the effect of the load at equal a/l,
// and widens it by what is not known of that effect.
func (f *fit) shift(k *node, l float64) {
	scale := f.scale(k.unit, k.mean)
	move := f.effect * scale * within(l-f.loadRef, 3)
	off := scale * within(l-k.load, 3)
	wider := f.z * (math.Sqrt(k.variance+f.effectVar*off*off) - math.Sqrt(k.variance))
	top := f.mode.highest()
	k.mean = max(0, min(top, k.mean+move))
	k.lower = max(0, min(k.mean, k.lower+move-wider))
	k.upper = min(top, max(k.mean, k.upper+move+wider))
}
