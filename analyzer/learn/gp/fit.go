package gp

import (
	"math"

	"github.com/trimtab/trimtab/internal/num"
)

const (
	// maxNodes bounds the points of a fit: the bins, and points inside gaps.
	maxNodes = maxBins + 32
	// inGap is the most points put into one gap between bins, wide the least
	// octaves between two of them.
	inGap, wide = 7, 0.05
	// wander is the prior variance of the performance per octave, relative to
	// its highest, worth wanderOctaves octaves of data.
	wander, wanderOctaves = 0.1, 0.25
	// caution widens the bands for what is estimated from the same reports:
	// noise and steepness. Set by measurement; see the coverage table.
	caution = 1
	// narrow is the least distance between bins, in octaves.
	narrow = 1e-6
)

// node is one point of the fitted curve.
type node struct {
	x float64 // log2(a/l)
	// low and high are the extent of a narrow bin, which is one place, and
	// where the visited range ends.
	low, high float64
	load      float64 // ln of the load that was seen here
	mean, lower, upper,
	variance float64
	// unit is the variance of a report of weight 1 and dispersion 1.
	unit float64
	// phi is the dispersion here: how much noisier reports are than unit and
	// their weights say.
	phi float64
	// way is the variance of the walk from the node before to here.
	way float64
	// abrupt is how far the rise from the node before stands out from those
	// around it: 0 on a smooth curve, 1 at a step.
	abrupt float64
	// fresh tells that most of what was seen here belongs to the block of
	// reports that is being judged.
	fresh bool
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
	// falls: more resource makes it worse somewhere; tail: at the upper end.
	falls, tail bool

	leaf    []leafFit
	gap     []gapFit
	y, r, p []float64 // observations, their variances, predictions
	weight  []float64
	blocks  []num.Block
	runs    []run
}

// gapFit is the way from one bin to the next.
type gapFit struct {
	// octaves is its width, rise the squared rise beyond the noise.
	octaves, rise float64
	// wander is the variance of the walk per octave.
	wander float64
}

// clear forgets the curve and keeps the memory.
func (f *fit) clear() { f.nodes = f.nodes[:0] }

// update makes the curve from the bins: noise, then the effect of the load,
// then the random walk through the bins, then monotonicity.
func (f *fit) update(s *state, z float64) {
	reports := 0.0
	for i := range s.Bins {
		reports += s.Bins[i].N
	}
	// With few reports, noise and steepness are guesses.
	f.mode, f.z, f.serial = s.Mode, z*caution*(1+3/(reports+1)), s.Watch.serial()
	f.disperse(s.Bins)
	f.effects(s.Bins)
	f.steepness(s.Bins)
	f.place(s.Bins)
	f.smooth()
	f.bound()
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
		g.rise, g.octaves = d*d-a.r-b.r, max(bins[i+1].X-bins[i].X, narrow)
		rise += g.rise
		octaves += g.octaves
	}
	whole := max(rise/octaves, 0.01*prior)
	for i := range n {
		r, d := 0.0, 0.0
		for j := max(0, i-2); j <= min(n-1, i+2); j++ {
			r += f.gap[j].rise
			d += f.gap[j].octaves
		}
		g := &f.gap[i]
		own := g.rise / g.octaves
		g.wander = max(0.3*whole, max(own, 0.5*(whole+max(r, 0)/d)))
	}
}

// place puts a node on each bin and, in wide gaps, on points between, where
// only the walk tells how far the curve can be.
func (f *fit) place(bins []bin) {
	f.nodes, f.y, f.r = resize(f.nodes, maxNodes)[:0], resize(f.y, maxNodes)[:0], resize(f.r, maxNodes)[:0]
	spare := maxNodes - len(bins)
	for i := range bins {
		b, l := &bins[i], &f.leaf[i]
		step := 0.0
		if i > 0 {
			g := &f.gap[i-1]
			inside := min(inGap, spare, int(g.octaves/wide))
			spare -= inside
			step = g.wander * g.octaves / float64(inside+1)
			f.fill(&bins[i-1], b, inside, node{phi: max(l.phi, f.leaf[i-1].phi), way: step})
		}
		l.node = len(f.nodes)
		k := node{x: b.X, low: b.X, high: b.X, load: b.L, unit: l.unit, phi: l.phi, way: step, observed: true, fresh: 2*b.Fresh > b.N}
		if i == 0 || b.High-b.Low <= finest {
			k.low = b.Low
		}
		if i == len(bins)-1 || b.High-b.Low <= finest {
			k.high = b.High
		}
		f.nodes = append(f.nodes, k)
		f.y, f.r = append(f.y, l.y), append(f.r, l.r)
	}
}

// fill puts n nodes like k between two bins.
func (f *fit) fill(a, b *bin, n int, k node) {
	for i := 1; i <= n; i++ {
		t := float64(i) / float64(n+1)
		k.x, k.load = a.X+t*(b.X-a.X), a.L+t*(b.L-a.L)
		k.low, k.high = k.x, k.x
		f.nodes = append(f.nodes, k)
		f.y, f.r = append(f.y, 0), append(f.r, math.Inf(1))
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
		k.mean, f.p[i] = before.mean, before.variance+k.way
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
	}
	// Noise that comes in rows makes means less certain than it looks. It is
	// kept out of the smoothing, whose own errors come in rows, too: they must
	// not smooth even more.
	for i := range f.nodes {
		k := &f.nodes[i]
		k.variance = max(f.serial*k.variance, 1e-18)
	}
}

func within(v, reach float64) float64 { return max(-reach, min(reach, v)) }

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
		return make([]T, n, max(n, min(maxNodes, 2*n)))
	}
	return s[:n]
}
