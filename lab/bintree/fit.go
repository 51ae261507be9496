package bintree

import (
	"math"
	"sort"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/walk"
	"github.com/trimtab/trimtab/internal/num"
)

const (
	// maxNodes bounds the points of a fit: the bins, and points inside gaps.
	maxNodes = maxBins + 64
	// inGap is the most points put into one gap between bins.
	inGap = 7
	// loadEffect is the prior deviation of the effect that a load e times as
	// high has at equal a/l; 0 would be exact scaling.
	loadEffect = 0.1
	// caution widens the bands, since noise and steepness are estimated from the same reports.
	// Set by measurement; see the coverage table.
	caution = 1.08
	// between is how much of the variance of a step from node to node is added to interpolated
	// bounds, for the curve's course in between. The walk itself has t(1-t), 1/6 on average;
	// curves are smoother than it.
	between = 1.0 / 24
	// resolution is the least half width of a band, relative to the highest
	// performance: nothing finer is claimed.
	resolution = 1e-3
)

// fit is the curve with its bounds, as points to interpolate between. It is a
// function of the bins and the serial correlation alone, and holds scratch
// memory besides.
type fit struct {
	walk.Fit
	nodes []walk.Node

	leaf         []walk.Leaf
	gap          []walk.Gap
	path         walk.Path
	way          []float64 // the variance of the walk to each node
	y, weight    []float64
	lower, upper []float64
	blocks       []num.Block
}

// update makes the curve from the bins: noise, then the effect of the load,
// then the random walk through the bins, then monotonicity.
func (f *fit) update(m walk.Mode, bins []bin, serial, z float64) {
	reports := 0.0
	for i := range bins {
		reports += bins[i].N
	}
	// With few reports, noise and steepness are guesses.
	f.Mode, f.Z, f.Serial = m, z*caution*(1+3/(reports+1)), serial
	f.disperse(bins)
	f.effects(bins)
	f.gap = resize(f.gap, max(0, len(bins)-1))
	walk.Steepness{Telling: 1, Around: 0.5}.Estimate(f.gap, f.leaf, f.Top)
	f.place(bins)
	f.path.Make(len(f.way))
	f.path.Smooth(1e-18)
	f.bound()
}

// disperse estimates the noise of each bin's mean: the spread of reports
// inside the bin and its neighbours, relative to what their weights explain.
func (f *fit) disperse(bins []bin) {
	f.leaf = resize(f.leaf, len(bins))
	f.Top = 1
	if f.Mode != walk.Fraction {
		f.Top = learn.Least
		for i := range bins {
			f.Top = math.Max(f.Top, bins[i].P)
		}
	}
	prior, worth := 1.0, 4.0
	if f.Mode == walk.Plain {
		prior, worth = 0.01, 3 // 10% of the value, until the spread is known
	}
	sum, freedom := prior*worth, worth
	for i := range bins {
		l := &f.leaf[i]
		l.Unit = f.UnitAt(f.pilot(bins, i))
		l.Squares, l.Freedom = bins[i].noise()
		l.Squares /= l.Unit
		sum += l.Squares
		freedom += l.Freedom
	}
	f.Phi = f.Floor(sum / freedom)
	for i := range bins {
		l := &f.leaf[i]
		l.Phi = f.around(i, len(bins)) * f.Serial
		l.X, l.Y, l.R = bins[i].X, bins[i].P, l.Unit*l.Phi/bins[i].W
	}
}

// near is how many bins on each side count as the neighbourhood of a bin.
const near = 3

// pilot is a first estimate at bin i, for its noise: the mean of its
// neighbourhood, half a request of each outcome added.
func (f *fit) pilot(bins []bin, i int) float64 {
	if f.Mode != walk.Fraction {
		return bins[i].P
	}
	sum, weight := 0.5, 1.0
	for j := max(0, i-1); j <= min(len(bins)-1, i+1); j++ {
		sum += bins[j].P * bins[j].W
		weight += bins[j].W
	}
	return sum / weight
}

// around mixes the dispersion of bin i's neighbourhood with the overall one.
func (f *fit) around(i, n int) float64 {
	const worth = 8
	sum, freedom := worth*f.Phi, float64(worth)
	for j := max(0, i-near); j <= min(n-1, i+near); j++ {
		sum += f.leaf[j].Squares
		freedom += f.leaf[j].Freedom
	}
	return f.Floor(sum / freedom)
}

// effects estimates the effect of the load at equal a/l: a straight line over ln(load) inside the
// bins, common to all, shrunk towards none. A service that scales has none; for others (part of
// the latency does not shrink with more resource), predictions at another load shift, and widen.
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
		g := f.Scale(l.Unit, b.P)
		v := l.R * b.W // of one unit of weight
		info += ll * g * g / v
		sum += lp * g / v
	}
	f.Effect, f.EffectVar, f.LoadRef = sum/info, 1/info, at/weight
	for i := range bins {
		l := &f.leaf[i]
		l.Y -= f.Effect * f.Scale(l.Unit, bins[i].P) * (bins[i].L - f.LoadRef)
	}
}

// place puts a node on each bin and, in gaps wider than a cell, on points between, where only the
// walk bounds the curve.
func (f *fit) place(bins []bin) {
	f.nodes, f.way = f.nodes[:0], f.way[:0]
	f.path.Make(maxNodes)
	spare := maxNodes - len(bins)
	for i := range bins {
		b, l := &bins[i], &f.leaf[i]
		step := 0.0
		if i > 0 {
			g := &f.gap[i-1]
			inside := min(inGap, spare, int(g.Octaves*(1<<finest)/1.5))
			spare -= inside
			step = g.Wander * g.Octaves / float64(inside+1)
			f.fill(&bins[i-1], b, inside, walk.Node{Phi: math.Max(l.Phi, f.leaf[i-1].Phi)}, step)
		}
		f.nodes, f.way = append(f.nodes, walk.Node{X: b.X, Load: b.L, Unit: l.Unit, Phi: l.Phi, Observed: true}), append(f.way, step)
		f.path.Set(len(f.way)-1, l.Y, l.R, step)
	}
}

// fill puts n nodes like k between two bins.
func (f *fit) fill(a, b *bin, n int, k walk.Node, step float64) {
	for i := 1; i <= n; i++ {
		t := float64(i) / float64(n+1)
		k.X, k.Load = a.X+t*(b.X-a.X), a.L+t*(b.L-a.L)
		f.nodes, f.way = append(f.nodes, k), append(f.way, step)
		f.path.Set(len(f.way)-1, 0, math.Inf(1), step)
	}
}

// bound turns means and variances into bounds and applies monotonicity: points inside gaps are
// between the bins around them, and the isotonic regression of mean and bounds, with the same
// weights, keeps them in order.
func (f *fit) bound() {
	n := len(f.nodes)
	f.y, f.weight, f.lower, f.upper = resize(f.y, n), resize(f.weight, n), resize(f.lower, n), resize(f.upper, n)
	for i := range f.nodes {
		k := &f.nodes[i]
		k.Mean, k.Variance = f.path.Mean[i], f.path.Variance[i]
		if !k.Observed {
			k.Unit = f.UnitAt(k.Mean)
		}
		f.y[i], f.weight[i] = k.Mean, 1/k.Variance
		f.lower[i], f.upper[i] = f.interval(k)
		way := f.Z*f.Z*between*(f.step(i)+f.step(i+1))/2 + square(resolution*f.Top)
		f.lower[i] = k.Mean - math.Sqrt(square(k.Mean-f.lower[i])+way)
		f.upper[i] = k.Mean + math.Sqrt(square(f.upper[i]-k.Mean)+way)
	}
	for i := 1; i < n; i++ {
		if !f.nodes[i].Observed {
			f.lower[i] = math.Min(f.y[i], math.Max(f.lower[i], f.lower[i-1]))
		}
	}
	for i := n - 2; i > 0; i-- {
		if !f.nodes[i].Observed {
			f.upper[i] = math.Max(f.y[i], math.Min(f.upper[i], f.upper[i+1]))
		}
	}
	if cap(f.blocks) < n {
		f.blocks = make([]num.Block, 0, maxNodes)
	}
	for _, v := range [...][]float64{f.y, f.lower, f.upper} {
		num.Isotonic(v, f.weight, f.blocks)
	}
	top := f.Mode.Highest()
	for i := range f.nodes {
		k := &f.nodes[i]
		k.Mean = math.Max(0, math.Min(top, f.y[i]))
		// Not clipped yet: the load's effect is still to come.
		k.Lower, k.Upper = math.Min(k.Mean, f.lower[i]), math.Max(k.Mean, f.upper[i])
	}
}

// step is the variance of the walk from node i-1 to node i; 0 at the ends.
func (f *fit) step(i int) float64 {
	if i < 1 || i >= len(f.nodes) {
		return 0
	}
	return f.way[i]
}

// interval returns the bounds at one node. A fraction has the score interval for the number of
// requests that its variance corresponds to, which is valid near 0 and 1 too (E. Wilson, JASA 22,
// 1927); a number has the normal one.
func (f *fit) interval(k *walk.Node) (lower, upper float64) {
	if f.Mode != walk.Fraction {
		half := f.Z * math.Sqrt(k.Variance)
		return k.Mean - half, k.Mean + half
	}
	p := math.Max(0, math.Min(1, k.Mean))
	c := f.Z * f.Z * k.Variance / k.Unit // z²/n
	half := math.Sqrt(c * (p*(1-p) + c/4))
	return (p + c/2 - half) / (1 + c), (p + c/2 + half) / (1 + c)
}

// at returns the node interpolated at x, and on which side of the visited
// range x lies: -1, 0 or 1.
func (f *fit) at(x float64) (k walk.Node, side int) {
	n := len(f.nodes)
	i := sort.Search(n, func(i int) bool { return f.nodes[i].X >= x })
	switch {
	case i == n:
		return f.nodes[n-1], 1
	case f.nodes[i].X == x:
		return f.nodes[i], 0
	case i == 0:
		return f.nodes[0], -1
	}
	a, b := &f.nodes[i-1], &f.nodes[i]
	k.Between(a, b, x, (x-a.X)/(b.X-a.X))
	return k, 0
}

// predict is Tree.Predict.
func (f *fit) predict(allocation, load float64) trimtab.Band {
	x, l, ok := f.Place(allocation, load)
	if !ok || len(f.nodes) == 0 {
		return trimtab.Band{Lower: 0, Mean: 0.5, Upper: 1}
	}
	k, side := f.at(x)
	f.Shift(&k, l)
	band := trimtab.Band{Lower: k.Lower, Mean: k.Mean, Upper: k.Upper}
	switch side {
	case -1:
		// Less than was ever given: at most as good as there, perhaps useless.
		band.Lower = 0
		band.Mean *= math.Exp2(x - k.X)
	case 1:
		// More than was ever given: at least as good, perhaps better.
		band.Upper = f.Beyond(k.Upper, x-k.X)
	}
	return band
}

func square(v float64) float64 { return v * v }

// resize returns s with length n, its elements undefined.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, max(n, maxNodes))
	}
	return s[:n]
}
