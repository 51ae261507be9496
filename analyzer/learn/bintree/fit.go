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
	// wander is the prior variance of the performance per octave, relative to
	// its highest, worth wanderOctaves octaves of data.
	wander, wanderOctaves = 0.1, 0.25
	// loadEffect is the prior deviation of the effect that a load e times as
	// high has at equal a/l; 0 would be exact scaling.
	loadEffect = 0.1
	// caution widens the bands for what is estimated from the same reports:
	// noise and steepness. Set by measurement; see the coverage table.
	caution = 1.08
	// between is how much of the variance of a step from node to node is added
	// for what the curve does on the way, where bounds are interpolated. The
	// walk itself has t(1-t), 1/6 on average; curves are smoother than it.
	between = 1.0 / 24
	// resolution is the least half width of a band, relative to the highest
	// performance: nothing finer is claimed.
	resolution = 1e-3
	// narrow is the least distance between bins, in octaves.
	narrow = 1e-6
)

// node is one point of the fitted curve.
type node struct {
	x    float64 // log2(a/l)
	load float64 // ln of the load that was seen here
	mean, lower, upper,
	variance float64
	// unit is the variance of a report of weight 1 and dispersion 1.
	unit float64
	// phi is the dispersion here: how much noisier reports are than unit and
	// their weights say, with their correlation from one to the next.
	phi float64
	// observed tells bins from points inside gaps.
	observed bool
}

// fit is the curve with its bounds, as points to interpolate between. It is a
// function of the bins and the serial correlation alone, and holds scratch
// memory besides.
type fit struct {
	mode  mode
	nodes []node
	z     float64
	// top is the highest mean of a bin: the scale of a number, 1 for fractions.
	top float64
	// effect is the shift of the performance, in units of scale(node), per
	// unit of ln(load) from loadRef at equal a/l, and effectVar its variance.
	effect, effectVar, loadRef float64
	// phi and serial are the dispersion and its factor for serial correlation.
	phi, serial float64

	leaf         []leafFit
	gap          []gapFit
	y, r, q, p   []float64 // observations, their variances, steps, predictions
	weight       []float64
	lower, upper []float64
	blocks       []num.Block
}

// leafFit is what the fit knows of one bin.
type leafFit struct {
	unit, phi, squares, freedom float64
	y, r                        float64
}

// gapFit is the way from one bin to the next.
type gapFit struct {
	// octaves is its width, rise the squared rise beyond the noise.
	octaves, rise float64
	// wander is the variance of the walk per octave.
	wander float64
}

// update makes the curve from the bins: noise, then the effect of the load,
// then the random walk through the bins, then monotonicity.
func (f *fit) update(m mode, bins []bin, serial, z float64) {
	reports := 0.0
	for i := range bins {
		reports += bins[i].N
	}
	// With few reports, noise and steepness are guesses.
	f.mode, f.z, f.serial = m, z*caution*(1+3/(reports+1)), serial
	f.disperse(bins)
	f.effects(bins)
	f.steepness(bins)
	f.place(bins)
	f.smooth()
	f.bound()
}

// disperse estimates the noise of each bin's mean: the spread of reports
// inside the bin and its neighbours, relative to what their weights explain.
func (f *fit) disperse(bins []bin) {
	f.leaf = resize(f.leaf, len(bins))
	f.top = 1
	if f.mode != fraction {
		f.top = least
		for i := range bins {
			f.top = math.Max(f.top, bins[i].P)
		}
	}
	prior, worth := 1.0, 4.0
	if f.mode == plain {
		prior, worth = 0.01, 3 // 10% of the value, until the spread is known
	}
	sum, freedom := prior*worth, worth
	for i := range bins {
		l := &f.leaf[i]
		l.unit = f.unitAt(f.pilot(bins, i))
		l.squares, l.freedom = bins[i].noise()
		l.squares /= l.unit
		sum += l.squares
		freedom += l.freedom
	}
	f.phi = f.floor(sum / freedom)
	for i := range bins {
		l := &f.leaf[i]
		l.phi = f.around(i, len(bins)) * f.serial
		l.y, l.r = bins[i].P, l.unit*l.phi/bins[i].W
	}
}

// near is how many bins on each side count as the neighbourhood of a bin.
const near = 3

// pilot is a first estimate at bin i, for its noise: the mean of its
// neighbourhood, half a request of each outcome added.
func (f *fit) pilot(bins []bin, i int) float64 {
	if f.mode != fraction {
		return bins[i].P
	}
	sum, weight := 0.5, 1.0
	for j := max(0, i-1); j <= min(len(bins)-1, i+1); j++ {
		sum += bins[j].P * bins[j].W
		weight += bins[j].W
	}
	return sum / weight
}

// unitAt is the variance of a report of weight 1 and dispersion 1 at p:
// binomial for fractions, the declared one, or in proportion to p squared.
func (f *fit) unitAt(p float64) float64 {
	switch f.mode {
	case fraction:
		p = math.Max(1e-6, math.Min(1-1e-6, p))
		return p * (1 - p)
	case declared:
		return 1
	}
	p = math.Max(p, 0.05*f.top)
	return p * p
}

// floor keeps a fraction's noise at or above the binomial one.
func (f *fit) floor(phi float64) float64 {
	if f.mode == fraction {
		return math.Max(1, phi)
	}
	return math.Max(1e-9, phi)
}

// around mixes the dispersion of bin i's neighbourhood with the overall one.
func (f *fit) around(i, n int) float64 {
	const worth = 8
	sum, freedom := worth*f.phi, float64(worth)
	for j := max(0, i-near); j <= min(n-1, i+near); j++ {
		sum += f.leaf[j].squares
		freedom += f.leaf[j].freedom
	}
	return f.floor(sum / freedom)
}

// scale is what an effect of the load of 1 does at a place of the given noise
// and height: nothing where a fraction is 0 or 1, in proportion to a number.
func (f *fit) scale(unit, p float64) float64 {
	if f.mode == fraction {
		return 2 * math.Sqrt(unit)
	}
	return math.Max(p, 0.05*f.top)
}

// effects estimates what the load does at equal a/l: a straight line over
// ln(load) inside the bins, common to all, shrunk to none. Where a service
// scales, it is none; where not (part of its latency does not shrink with
// more resource), predictions at another load shift, and widen.
func (f *fit) effects(bins []bin) {
	info, sum, weight, at := 1/(loadEffect*loadEffect), 0.0, 0.0, 0.0
	for i := range bins {
		b, l := &bins[i], &f.leaf[i]
		weight += b.N
		at += b.N * b.L
		ll, lp := b.byLoad()
		if ll == 0 {
			continue
		}
		g := f.scale(l.unit, b.P)
		v := l.r * b.W // of one unit of weight
		info += ll * g * g / v
		sum += lp * g / v
	}
	f.effect, f.effectVar, f.loadRef = sum/info, 1/info, at/weight
	for i := range bins {
		l := &f.leaf[i]
		l.y -= f.effect * f.scale(l.unit, bins[i].P) * (bins[i].L - f.loadRef)
	}
}

// steepness estimates, for each gap between bins, how far the curve wanders
// per octave: the squared rise beyond the noise, pooled over neighbours and
// mixed with the whole curve's, so that steps stay steps and flats flat.
func (f *fit) steepness(bins []bin) {
	n := max(0, len(bins)-1)
	f.gap = resize(f.gap, n)
	prior := wander * f.top * f.top
	rise, octaves := prior*wanderOctaves, wanderOctaves
	for i := range n {
		a, b, g := &f.leaf[i], &f.leaf[i+1], &f.gap[i]
		d := b.y - a.y
		g.rise, g.octaves = d*d-a.r-b.r, math.Max(bins[i+1].X-bins[i].X, narrow)
		rise += g.rise
		octaves += g.octaves
	}
	whole := math.Max(rise/octaves, 0.01*prior)
	for i := range n {
		r, d := 0.0, 0.0
		for j := max(0, i-2); j <= min(n-1, i+2); j++ {
			r += f.gap[j].rise
			d += f.gap[j].octaves
		}
		g := &f.gap[i]
		own := g.rise / g.octaves
		g.wander = math.Max(0.3*whole, math.Max(own, 0.5*(whole+math.Max(r, 0)/d)))
	}
}

// place puts a node on each bin and, in gaps wider than a cell, on points
// between, where only the walk tells how far the curve can be.
func (f *fit) place(bins []bin) {
	f.nodes, f.y, f.r, f.q = f.nodes[:0], f.y[:0], f.r[:0], f.q[:0]
	spare := maxNodes - len(bins)
	for i := range bins {
		b, l := &bins[i], &f.leaf[i]
		step := 0.0
		if i > 0 {
			g := &f.gap[i-1]
			inside := min(inGap, spare, int(g.octaves*(1<<finest)/1.5))
			spare -= inside
			step = g.wander * g.octaves / float64(inside+1)
			f.fill(&bins[i-1], b, inside, node{phi: math.Max(l.phi, f.leaf[i-1].phi)}, step)
		}
		f.nodes = append(f.nodes, node{x: b.X, load: b.L, unit: l.unit, phi: l.phi, observed: true})
		f.y, f.r, f.q = append(f.y, l.y), append(f.r, l.r), append(f.q, step)
	}
}

// fill puts n nodes like k between two bins.
func (f *fit) fill(a, b *bin, n int, k node, step float64) {
	for i := 1; i <= n; i++ {
		t := float64(i) / float64(n+1)
		k.x, k.load = a.X+t*(b.X-a.X), a.L+t*(b.L-a.L)
		f.nodes = append(f.nodes, k)
		f.y, f.r, f.q = append(f.y, 0), append(f.r, math.Inf(1)), append(f.q, step)
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

// bound turns means and variances into bounds and adds what monotonicity
// says: points inside gaps are between the bins around them, and the isotonic
// regression of mean and bounds, with the same weights, keeps them in order.
func (f *fit) bound() {
	n := len(f.nodes)
	f.y, f.weight, f.lower, f.upper = resize(f.y, n), resize(f.weight, n), resize(f.lower, n), resize(f.upper, n)
	for i := range f.nodes {
		k := &f.nodes[i]
		if !k.observed {
			k.unit = f.unitAt(k.mean)
		}
		f.y[i], f.weight[i] = k.mean, 1/k.variance
		f.lower[i], f.upper[i] = f.interval(k)
		way := f.z*f.z*between*(f.step(i)+f.step(i+1))/2 + square(resolution*f.top)
		f.lower[i] = k.mean - math.Sqrt(square(k.mean-f.lower[i])+way)
		f.upper[i] = k.mean + math.Sqrt(square(f.upper[i]-k.mean)+way)
	}
	for i := 1; i < n; i++ {
		if !f.nodes[i].observed {
			f.lower[i] = math.Min(f.y[i], math.Max(f.lower[i], f.lower[i-1]))
		}
	}
	for i := n - 2; i > 0; i-- {
		if !f.nodes[i].observed {
			f.upper[i] = math.Max(f.y[i], math.Min(f.upper[i], f.upper[i+1]))
		}
	}
	if cap(f.blocks) < n {
		f.blocks = make([]num.Block, 0, maxNodes)
	}
	for _, v := range [...][]float64{f.y, f.lower, f.upper} {
		num.Isotonic(v, f.weight, f.blocks)
	}
	top := f.mode.highest()
	for i := range f.nodes {
		k := &f.nodes[i]
		k.mean = math.Max(0, math.Min(top, f.y[i]))
		// Not clipped yet: the load's effect is still to come.
		k.lower, k.upper = math.Min(k.mean, f.lower[i]), math.Max(k.mean, f.upper[i])
	}
}

// step is the variance of the walk from node i-1 to node i; 0 at the ends.
func (f *fit) step(i int) float64 {
	if i < 1 || i >= len(f.nodes) {
		return 0
	}
	return f.q[i]
}

// interval returns the bounds at one node. A fraction has the score interval
// for as many requests as its variance stands for, which is right next to 0
// and 1 too (E. Wilson, JASA 22, 1927); a number has the normal one.
func (f *fit) interval(k *node) (lower, upper float64) {
	if f.mode != fraction {
		half := f.z * math.Sqrt(k.variance)
		return k.mean - half, k.mean + half
	}
	p := math.Max(0, math.Min(1, k.mean))
	c := f.z * f.z * k.variance / k.unit // z²/n
	half := math.Sqrt(c * (p*(1-p) + c/4))
	return (p + c/2 - half) / (1 + c), (p + c/2 + half) / (1 + c)
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
		unit:     a.unit + t*(b.unit-a.unit),
		phi:      a.phi + t*(b.phi-a.phi),
	}, 0
}

// predict is Tree.Predict.
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
		// More than was ever given: at least as good, perhaps perfect; a
		// number without known range grows at most like the allocation.
		band.Upper = 1
		if f.mode != fraction {
			band.Upper = math.Min(greatest, k.upper*math.Exp2(math.Min(64, x-k.x)))
		}
	}
	return band
}

// shift moves k to the load l (ln), by the effect of the load at equal a/l,
// and widens it by what is not known of that effect.
func (f *fit) shift(k *node, l float64) {
	scale := f.scale(k.unit, k.mean)
	move := f.effect * scale * within(l-f.loadRef, 3)
	off := scale * within(l-k.load, 3)
	wider := f.z * (math.Sqrt(k.variance+f.effectVar*off*off) - math.Sqrt(k.variance))
	top := f.mode.highest()
	k.mean = math.Max(0, math.Min(top, k.mean+move))
	k.lower = math.Max(0, math.Min(k.mean, k.lower+move-wider))
	k.upper = math.Min(top, math.Max(k.mean, k.upper+move+wider))
}

func square(v float64) float64 { return v * v }

func within(v, reach float64) float64 { return math.Max(-reach, math.Min(reach, v)) }

// highest returns the end of the performance's range.
func (m mode) highest() float64 {
	if m == fraction {
		return 1
	}
	return greatest
}

// resize returns s with length n, its elements undefined.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, max(n, maxNodes))
	}
	return s[:n]
}
