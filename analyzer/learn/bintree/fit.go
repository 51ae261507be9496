package bintree

import (
	"math"
	"sort"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/num"
)

const (
	// maxNodes bounds the points of a fit: the bins, and points inside gaps.
	maxNodes = maxBins + 64
	// inGap is the most points put into one gap between bins.
	inGap = 7
	// wander is the prior variance per octave of the linked performance
	// (times the square of its scale), worth wanderOctaves octaves of data.
	wander, wanderOctaves = 0.1, 0.25
	// loadEffect is the prior deviation of the effect that a load e times as
	// high has at equal a/l, on the link's scale; 0 would be exact scaling.
	loadEffect = 0.1
	// caution widens the bands for what is estimated from the same reports:
	// noise and steepness. Set by measurement; see the coverage table.
	caution = 1.15
)

// node is one point of the fitted curve, on the link's scale.
type node struct {
	x    float64 // log2(a/l)
	load float64 // ln of the load that was seen here
	mean, lower, upper,
	variance float64
}

// fit is the curve with its bounds, as points to interpolate between. It is a
// function of the bins alone, and holds scratch memory besides.
type fit struct {
	mode  mode
	nodes []node
	z     float64
	// effect is the shift of the linked performance per unit of ln(load) from
	// loadRef at equal a/l, and effectVar its variance.
	effect, effectVar, loadRef float64
	// phi and serial are the dispersion and its factor for serial correlation.
	phi, serial float64
	unit        func(p float64) float64

	leaf    []leafFit
	gap     []float64 // wander per octave between leaves
	y, r, q []float64 // observations, their variances, steps' variances
	p       []float64
	weight  []float64
	lower   []float64
	upper   []float64
	blocks  []num.Block
}

// leafFit is what the fit knows of one bin.
type leafFit struct {
	unit, squares, freedom float64
	phi, y, r              float64
}

// update makes the curve from the bins: noise, then the effect of the load,
// then the random walk through the bins, then monotonicity.
func (f *fit) update(m mode, bins []bin, serial, z float64) {
	f.mode, f.z, f.serial = m, z*caution, serial
	f.disperse(m, bins)
	f.effects(m, bins)
	f.steepness(m, bins)
	f.place(bins)
	f.smooth()
	f.bound(m)
}

// disperse estimates the noise of each bin's mean: the spread of reports
// inside the bin and its neighbours, relative to what their weights explain.
func (f *fit) disperse(m mode, bins []bin) {
	f.leaf = resize(f.leaf, len(bins))
	top := 0.0
	for i := range bins {
		top = math.Max(top, bins[i].P)
	}
	f.unit = unitOf(m, top)
	prior, worth := 1.0, 4.0
	if m == plain {
		prior, worth = 0.01, 3 // 10% of the value, until the spread is known
	}
	sum, freedom := prior*worth, worth
	for i := range bins {
		b, l := &bins[i], &f.leaf[i]
		p := b.P
		if m == fraction {
			p = (b.P*b.W + 0.5) / (b.W + 1)
		}
		l.unit = f.unit(p)
		l.squares, l.freedom = b.noise()
		l.squares /= l.unit
		sum += l.squares
		freedom += l.freedom
	}
	f.phi = floorPhi(m, sum/freedom)
	for i := range bins {
		f.local(m, bins, i)
	}
}

// unitOf returns the variance of a report of weight 1 and dispersion 1.
func unitOf(m mode, top float64) func(p float64) float64 {
	switch m {
	case fraction:
		return func(p float64) float64 { p = math.Max(1e-4, math.Min(1-1e-4, p)); return p * (1 - p) }
	case declared:
		return func(float64) float64 { return 1 }
	}
	return func(p float64) float64 { p = math.Max(p, math.Max(0.05*top, least)); return p * p }
}

// floorPhi keeps a fraction's noise at or above the binomial one.
func floorPhi(m mode, phi float64) float64 {
	if m == fraction {
		return math.Max(1, phi)
	}
	return math.Max(1e-9, phi)
}

// local mixes the dispersion of bin i's neighbourhood with the overall one,
// and sets the bin's linked mean and variance.
func (f *fit) local(m mode, bins []bin, i int) {
	const near, worth = 3, 8
	sum, freedom := worth*f.phi, float64(worth)
	for j := max(0, i-near); j <= min(len(bins)-1, i+near); j++ {
		sum += f.leaf[j].squares
		freedom += f.leaf[j].freedom
	}
	l, b := &f.leaf[i], &bins[i]
	l.phi = floorPhi(m, sum/freedom)
	l.y, l.r = m.link(b.P, b.W/(l.phi*f.serial), l.unit*l.phi*f.serial/b.W)
}

// effects estimates what the load does at equal a/l: a straight line over
// ln(load) inside the bins, common to all, shrunk to none. Where a service
// scales, it is none; where not (part of its latency does not shrink with
// more resource), predictions at another load shift, and widen.
func (f *fit) effects(m mode, bins []bin) {
	info, sum, weight, at := 0.0, 0.0, 0.0, 0.0
	top := 0.0
	for i := range bins {
		b, l := &bins[i], &f.leaf[i]
		weight += b.N
		at += b.N * b.L
		top = math.Max(top, l.y)
		ll, lp := b.byLoad()
		if ll == 0 {
			continue
		}
		g := m.steep(b.P, l.unit)
		v := l.phi * f.serial * l.unit * g * g
		info += ll / v
		sum += lp * g / v
	}
	prior := loadEffect
	if m != fraction {
		prior *= top + math.Sqrt(least)
	}
	info += 1 / (prior * prior)
	f.effect, f.effectVar, f.loadRef = sum/info, 1/info, 0
	if weight > 0 {
		f.loadRef = at / weight
	}
	for i := range bins {
		f.leaf[i].y -= f.effect * (bins[i].L - f.loadRef)
	}
}

// steepness estimates, for each gap between bins, how far the curve wanders
// per octave: the squared rise beyond the noise, pooled over neighbours and
// mixed with the whole curve's, so that steps stay steps and flats flat.
func (f *fit) steepness(m mode, bins []bin) {
	n := len(bins) - 1
	f.gap = resize(f.gap, max(0, n))
	scale := 1.0
	if m != fraction {
		scale = 0
		for i := range f.leaf {
			scale = math.Max(scale, f.leaf[i].y*f.leaf[i].y)
		}
		scale = math.Max(scale, least)
	}
	rise := wander * wanderOctaves * scale
	octaves := wanderOctaves
	for i := range n {
		u, d := f.rise(bins, i)
		rise += u
		octaves += d
	}
	whole := math.Max(rise/octaves, 0.01*wander*scale)
	for i := range n {
		u, d := f.rise(bins, i)
		own := math.Max(u, 0) / d
		u, d = 0, 0
		for j := max(0, i-2); j <= min(n-1, i+2); j++ {
			uj, dj := f.rise(bins, j)
			u += uj
			d += dj
		}
		f.gap[i] = math.Max(0.3*whole, math.Max(own, 0.5*(whole+math.Max(u, 0)/d)))
	}
}

// rise returns the squared rise over gap i less what noise explains of it,
// and its width in octaves.
func (f *fit) rise(bins []bin, i int) (squared, octaves float64) {
	a, b := &f.leaf[i], &f.leaf[i+1]
	d := b.y - a.y
	return d*d - a.r - b.r, math.Max(bins[i+1].X-bins[i].X, 1e-6)
}

// place puts a node on each bin and, in gaps wider than a cell, on points
// between, where only the walk tells how far the curve can be.
func (f *fit) place(bins []bin) {
	f.nodes, f.y, f.r, f.q = f.nodes[:0], f.y[:0], f.r[:0], f.q[:0]
	put := func(n node, y, r, q float64) {
		f.nodes, f.y, f.r, f.q = append(f.nodes, n), append(f.y, y), append(f.r, r), append(f.q, q)
	}
	spare := maxNodes - len(bins)
	for i := range bins {
		b, l := &bins[i], &f.leaf[i]
		if i == 0 {
			put(node{x: b.X, load: b.L}, l.y, l.r, 0)
			continue
		}
		before := &bins[i-1]
		wide := math.Max(b.X-before.X, 1e-6)
		inside := min(inGap, spare, int(wide*(1<<finest)/1.5))
		spare -= inside
		step := f.gap[i-1] * wide / float64(inside+1)
		for k := 1; k <= inside; k++ {
			t := float64(k) / float64(inside+1)
			put(node{x: before.X + t*wide, load: before.L + t*(b.L-before.L)}, 0, math.Inf(1), step)
		}
		put(node{x: b.X, load: b.L}, l.y, l.r, step)
	}
}

// smooth sets mean and variance of the nodes: the Kalman filter forward and
// the Rauch-Tung-Striebel smoother back, for a random walk seen with noise.
//
//	m(x+d) = m(x) + N(0, q d),   y = m(x) + N(0, r)
func (f *fit) smooth() {
	n := len(f.nodes)
	f.p = resize(f.p, n)
	for i := range f.nodes {
		k := &f.nodes[i]
		if i == 0 {
			k.mean, k.variance = f.y[0], f.r[0]
			continue
		}
		before := &f.nodes[i-1]
		k.mean, f.p[i] = before.mean, before.variance+f.q[i]
		k.variance = f.p[i]
		if r := f.r[i]; !math.IsInf(r, 1) {
			gain := f.p[i] / (f.p[i] + r)
			k.mean += gain * (f.y[i] - k.mean)
			k.variance = (1 - gain) * f.p[i]
		}
	}
	for i := n - 2; i >= 0; i-- {
		k, next := &f.nodes[i], &f.nodes[i+1]
		c := k.variance / f.p[i+1]
		k.mean += c * (next.mean - k.mean)
		k.variance += c * c * (next.variance - f.p[i+1])
		k.variance = math.Max(k.variance, 1e-18)
	}
}

// bound adds what monotonicity says: the isotonic regression of mean and
// bounds with the same weights, so that they stay in order.
func (f *fit) bound(m mode) {
	n := len(f.nodes)
	f.y, f.weight, f.lower, f.upper = resize(f.y, n), resize(f.weight, n), resize(f.lower, n), resize(f.upper, n)
	for i, k := range f.nodes {
		half := f.z * math.Sqrt(k.variance)
		f.y[i], f.lower[i], f.upper[i] = k.mean, k.mean-half, k.mean+half
		f.weight[i] = 1 / k.variance
	}
	if cap(f.blocks) < n {
		f.blocks = make([]num.Block, 0, maxNodes)
	}
	for _, v := range [][]float64{f.y, f.lower, f.upper} {
		num.Isotonic(v, f.weight, f.blocks)
	}
	top := m.highest()
	for i := range f.nodes {
		k := &f.nodes[i]
		k.mean = math.Max(0, math.Min(top, f.y[i]))
		k.lower = math.Max(0, math.Min(k.mean, f.lower[i]))
		k.upper = math.Min(top, math.Max(k.mean, f.upper[i]))
	}
}

// at returns the node interpolated at x, and on which side of the visited
// range x lies: -1, 0 or 1.
func (f *fit) at(x float64) (k node, side int) {
	n := len(f.nodes)
	i := sort.Search(n, func(i int) bool { return f.nodes[i].x >= x })
	switch {
	case i == n:
		return f.nodes[n-1], 1
	case f.nodes[i].x == x:
		return f.nodes[i], 0
	case i == 0:
		return f.nodes[0], -1
	}
	a, b := &f.nodes[i-1], &f.nodes[i]
	t := (x - a.x) / (b.x - a.x)
	return node{
		x:        x,
		load:     a.load + t*(b.load-a.load),
		mean:     a.mean + t*(b.mean-a.mean),
		lower:    a.lower + t*(b.lower-a.lower),
		upper:    a.upper + t*(b.upper-a.upper),
		variance: a.variance + t*(b.variance-a.variance),
	}, 0
}

// predict is Tree.Predict.
func (f *fit) predict(m mode, allocation, load float64) trimtab.Band {
	valid := allocation >= 0 && load >= 0 && !math.IsInf(allocation, 0) && !math.IsInf(load, 0)
	if len(f.nodes) == 0 || !valid {
		return trimtab.Band{Lower: 0, Mean: 0.5, Upper: 1}
	}
	x, l := math.Inf(-1), f.loadRef
	switch {
	case allocation > 0 && load > 0:
		x, l = math.Log2(allocation/load), math.Log(load)
	case allocation > 0:
		x = math.Inf(1)
	}
	k, side := f.at(x)
	f.shift(&k, l)
	band := trimtab.Band{Lower: m.unlink(k.lower), Mean: m.unlink(k.mean), Upper: m.unlink(k.upper)}
	switch side {
	case -1:
		// Less than was ever given: at most as good as there, perhaps useless.
		band.Lower = 0
		band.Mean *= math.Exp2(x - k.x)
	case 1:
		// More than was ever given: at least as good, perhaps perfect; a
		// number without known range grows at most like the allocation.
		band.Upper = 1
		if m != fraction {
			band.Upper = math.Min(greatest, m.unlink(k.upper)*math.Exp2(math.Min(64, x-k.x)))
		}
	}
	return band
}

// shift moves k to the load l (ln), by the effect of the load at equal a/l,
// and widens it by what is not known of that effect.
func (f *fit) shift(k *node, l float64) {
	far := math.Max(-3, math.Min(3, l-f.loadRef))
	move := f.effect * far
	off := math.Max(-3, math.Min(3, l-k.load))
	sd := math.Sqrt(k.variance)
	wider := f.z * (math.Sqrt(k.variance+f.effectVar*off*off) - sd)
	k.mean += move
	k.lower += move - wider
	k.upper += move + wider
}

// resize returns s with length n, its elements undefined.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, max(n, maxNodes))
	}
	return s[:n]
}
