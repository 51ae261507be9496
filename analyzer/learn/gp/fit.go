package gp

import (
	"math"

	"github.com/trimtab/trimtab/analyzer/learn/walk"
	"github.com/trimtab/trimtab/internal/num"
)

const (
	// maxNodes bounds the points of a fit: the bins, and points inside gaps.
	maxNodes = maxBins + 32
	// inGap is the most points put into one gap between bins, wide the least
	// octaves between two of them.
	inGap, wide = 7, 0.05
	// caution widens the bands, since noise and steepness are estimated from the same reports.
	// Set by measurement; see the coverage table.
	caution = 1
	// telling and around are those of walk.Steepness: a rise between two bins is a step beyond
	// 2.5 standard errors. Set by measurement: with 1, reports with 20% of noise cost .008 of
	// social welfare; without the weight of the surroundings, more of it is taken for changes.
	telling, around = 6.25, 0.75
)

// node is one point of the fitted curve.
type node struct {
	walk.Node
	// low and high are the extent of a narrow bin, which counts as one point, and of the ends of
	// the visited range.
	low, high float64
	// way is the variance of the walk from the node before to here.
	way float64
	// abrupt is how far the rise from the node before exceeds its neighbours: 0 on a smooth
	// curve, 1 at a step.
	abrupt float64
	// fresh: most of what was seen here belongs to the block of reports that is being judged.
	fresh bool
}

// fit is the curve with its bounds, as points to interpolate between. It is a
// function of the bins and the serial correlation alone, and holds scratch
// memory besides.
type fit struct {
	walk.Fit
	nodes []node
	// latest is the node that was asked for last, a hint for index.
	latest int
	// falls: more resource makes it worse somewhere; tail: at the upper end.
	falls, tail bool

	leaf []walk.Leaf
	// home is the node of each leaf.
	home   []uint8
	gap    []walk.Gap
	path   walk.Path
	blocks []num.Block
	runs   []run
}

// clear forgets the curve and keeps the memory.
func (f *fit) clear() { f.nodes, f.leaf = f.nodes[:0], f.leaf[:0] }

// everything: not one bin but all of them may have changed.
const everything = -1

// update makes the curve from the bins: noise, then the effect of the load,
// then the random walk through the bins, then monotonicity. Only the bin at
// changed is another than before, unless that is everything.
func (f *fit) update(s *state, z float64, changed int) {
	reports := 0.0
	for i := range s.Bins {
		reports += s.Bins[i].N
	}
	// With few reports, noise and steepness are guesses.
	f.Mode, f.Z, f.Serial = s.Mode, z*caution*(1+3/(reports+1)), s.Watch.Factor()
	f.disperse(s.Bins, changed)
	f.effects(s.Bins)
	f.gap = resize(f.gap, max(0, len(s.Bins)-1))
	walk.Steepness{Telling: telling, Around: around}.Estimate(f.gap, f.leaf, f.Top)
	f.place(s.Bins)
	f.smooth()
	f.bound()
}

// place puts a node on each bin and, in wide gaps, on points between, where only the walk bounds
// the curve.
func (f *fit) place(bins []bin) {
	f.nodes, f.home = f.nodes[:0], resize(f.home, len(bins))
	f.path.Make(maxNodes)
	spare := maxNodes - len(bins)
	for i := range bins {
		b, l := &bins[i], &f.leaf[i]
		step := 0.0
		if i > 0 {
			g := &f.gap[i-1]
			step = g.Wander * g.Octaves
			if inside := min(inGap, spare, int(g.Octaves/wide)); inside > 0 {
				spare -= inside
				step /= float64(inside + 1)
				gap := node{Node: walk.Node{Phi: max(l.Phi, f.leaf[i-1].Phi)}, way: step}
				for j := 1; j <= inside; j++ {
					f.inside(&bins[i-1], b, float64(j)/float64(inside+1), &gap)
				}
			}
		}
		f.home[i] = uint8(len(f.nodes)) // less than maxNodes
		f.path.Set(len(f.nodes), l.Y, l.R, step)
		k := node{low: b.X, high: b.X, way: step, fresh: 2*b.Fresh > b.N}
		k.X, k.Load, k.Unit, k.Phi, k.Observed = b.X, b.L, l.Unit, l.Phi, true
		if i == 0 || b.High-b.Low <= finest {
			k.low = b.Low
		}
		if i == len(bins)-1 || b.High-b.Low <= finest {
			k.high = b.High
		}
		f.add(&k)
	}
	f.path.Make(len(f.nodes))
}

// inside adds a node like k, at the fraction t of the way from bin a to b.
func (f *fit) inside(a, b *bin, t float64, k *node) {
	k.X, k.Load = a.X+t*(b.X-a.X), a.L+t*(b.L-a.L)
	k.low, k.high = k.X, k.X
	f.path.Set(len(f.nodes), 0, math.Inf(1), k.way)
	f.add(k)
}

// add appends a node, of which there are maxNodes at most.
func (f *fit) add(k *node) {
	if n := len(f.nodes); n == cap(f.nodes) {
		f.nodes = append(make([]node, 0, min(maxNodes, max(8, 2*n))), f.nodes...)
	}
	f.nodes = append(f.nodes, *k)
}

// smooth sets mean and variance of the nodes.
func (f *fit) smooth() {
	f.path.Smooth(math.Inf(-1))
	// Correlated noise makes means less certain than they look. It is applied after the
	// smoothing, whose own errors are correlated too and must not smooth even more.
	for i := range f.nodes {
		k := &f.nodes[i]
		k.Mean, k.Variance = f.path.Mean[i], max(f.Serial*f.path.Variance[i], 1e-18)
	}
}

// resize returns s with length n, its elements undefined.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, max(n, min(maxNodes, 2*n)))
	}
	return s[:n]
}
