// Package published is the binning tree with the bounds that Cilantro's
// published implementation computes, for comparison only: they do not hold at
// their level and may cross.
//
// The interval [0, Width] of x = a/l is halved again and again; a node of
// depth h keeps the mean f of its reports weighted by 1/σ², and
//
//	[f ± (L Width 2^-h + β(t) / √Σ1/σ²)]
//	β(t) = 10^-3 √((4 + 2 ln 2) ln(π² 2^⌈log2(t+1)⌉ / (6 · 10^-3)))
//
// after t reports. Bounds of a node only ever tighten: they are clipped by
// those it had before, by its children's, and by its neighbours' at the same
// depth, since the performance rises with x. A leaf is split when it holds
// three reports and Σ1/σ² >= 10^-5 (β/L)² 4^h.
//
// The factor 10^-3 was tuned by hand, the Lipschitz constant L and the width
// are profiled beforehand, and because bounds never widen, noise that crossed
// once stays, and a change is never learnt.
//
// Source: Cilantro (OSDI'23), section 5, and its public repository, measured.
// Package bintree has bounds that hold.
package published

import (
	"fmt"
	"math"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
)

// maxDepth bounds the tree, which the published one does not.
const maxDepth = 9

// Config are the constants that must be known beforehand.
type Config struct {
	// Width is the highest a/l, > 0; Lipschitz is L, > 0, in performance per
	// a/l; Top the highest performance, > 0.
	Width, Lipschitz, Top float64
}

// Tree is the learner; make one with [New]. It implements learn.Learner but
// for snapshots, which it refuses.
type Tree struct {
	learn.Plain

	config  Config
	reports int
	// levels hold the nodes of each depth in order of place.
	levels [maxDepth + 1][]*node
}

type node struct {
	depth, place int
	n            int
	weight, sum  float64
	lower, upper float64
	split        bool
}

var _ learn.Learner = (*Tree)(nil)

// New returns a tree that has seen nothing.
func New(c Config) (*Tree, error) {
	for _, v := range []float64{c.Width, c.Lipschitz, c.Top} {
		if !(v > 0 && v <= 1e15) {
			return nil, trimtab.Invalidf("make published tree: width %v, Lipschitz constant %v, top %v: want > 0", c.Width, c.Lipschitz, c.Top)
		}
	}
	t := &Tree{config: c}
	t.levels[0] = []*node{{upper: c.Top}}
	t.expand(t.levels[0][0])
	return t, nil
}

// Name returns "bintree-published/1".
func (t *Tree) Name() string { return "bintree-published/1" }

// Reports returns how many reports were taken.
func (t *Tree) Reports() int { return t.reports }

// beta is the factor of the noise.
func (t *Tree) beta() float64 {
	n := math.Exp2(math.Ceil(math.Log2(float64(t.reports) + 1)))
	return 1e-3 * math.Sqrt((4+2*math.Ln2)*math.Log(math.Pi*math.Pi*n/(6*1e-3)))
}

// Observe takes one report. Without sigma, the published clients' stands in:
// min(0.5, 10/√(2N)) of N requests, else 0.6 of the performance.
func (t *Tree) Observe(o learn.Observation) error {
	for _, v := range []float64{o.Allocation, o.Load, o.Performance, o.Requests, o.Sigma} {
		if !(v >= 0 && v <= 1e15) {
			return fmt.Errorf("observe: %w", trimtab.Invalidf("report %+v", o))
		}
	}
	sigma := o.Sigma
	switch {
	case sigma > 0:
	case o.Requests > 0:
		sigma = math.Min(0.5, 10/math.Sqrt(2*o.Requests))
	default:
		sigma = 0.6 * o.Performance
	}
	if !(o.Allocation > 0 && o.Load > 0 && sigma > 0) {
		return fmt.Errorf("observe: %w", trimtab.Invalidf("report %+v: want allocation, load and noise > 0", o))
	}
	t.reports++
	path := t.assign(o.Allocation/o.Load, o.Performance, 1/(sigma*sigma))
	for i := len(path) - 1; i >= 0; i-- {
		t.tighten(path[i])
	}
	last := path[len(path)-1]
	if !last.split && last.n >= 3 && last.depth < maxDepth && last.weight >= t.enough(last.depth) {
		t.expand(last)
	}
	if t.reports&(t.reports-1) == 0 {
		for depth := maxDepth; depth >= 0; depth-- {
			for _, v := range t.levels[depth] {
				t.tighten(v)
			}
		}
	}
	return nil
}

// enough is the weight that a node needs before reports go further down.
func (t *Tree) enough(depth int) float64 {
	b := t.beta() / t.config.Lipschitz
	return 1e-5 * b * b * math.Pow(4, float64(depth))
}

// assign gives a report to the nodes from the root down.
func (t *Tree) assign(x, p, weight float64) []*node {
	var path []*node
	for v := t.levels[0][0]; v != nil; v = t.below(v, x) {
		v.n++
		v.weight += weight
		v.sum += weight * p
		path = append(path, v)
		if !v.split || v.weight < t.enough(v.depth) {
			break
		}
	}
	return path
}

// below returns the child of v that x falls into, nil at a leaf.
func (t *Tree) below(v *node, x float64) *node {
	if !v.split {
		return nil
	}
	place := 2 * v.place
	if x >= t.config.Width*float64(place+1)/math.Exp2(float64(v.depth+1)) {
		place++
	}
	i, _ := t.find(v.depth+1, place)
	return t.levels[v.depth+1][i]
}

func (t *Tree) find(depth, place int) (int, bool) {
	return slices.BinarySearchFunc(t.levels[depth], place, func(v *node, place int) int { return v.place - place })
}

// expand splits v; its children begin with what their neighbours allow.
func (t *Tree) expand(v *node) {
	v.split = true
	i, _ := t.find(v.depth+1, 2*v.place)
	lower, upper := t.around(v.depth+1, i)
	for k := range 2 {
		child := &node{depth: v.depth + 1, place: 2*v.place + k, lower: lower, upper: upper}
		t.levels[child.depth] = slices.Insert(t.levels[child.depth], i+k, child)
	}
}

// around returns the bounds of what would stand at index i of a depth.
func (t *Tree) around(depth, i int) (lower, upper float64) {
	level := t.levels[depth]
	upper = t.config.Top
	if i > 0 {
		lower = level[i-1].lower
	}
	if i < len(level) {
		upper = level[i].upper
	}
	return lower, upper
}

// tighten narrows the bounds of v to what its reports and its children allow. Then it
// narrows the neighbours of v: performance never falls as the allocation grows, so nodes
// to the right have at least v's lower bound, and nodes to the left at most its upper one.
func (t *Tree) tighten(v *node) {
	if v.weight > 0 {
		f := v.sum / v.weight
		off := t.config.Lipschitz*t.config.Width*math.Exp2(-float64(v.depth)) + t.beta()/math.Sqrt(v.weight)
		v.lower, v.upper = math.Max(v.lower, f-off), math.Min(v.upper, f+off)
	}
	lower, upper := t.children(v)
	v.lower, v.upper = math.Max(v.lower, lower), math.Min(v.upper, upper)
	level := t.levels[v.depth]
	at, _ := t.find(v.depth, v.place)
	for i := at + 1; i < len(level) && level[i].lower < v.lower; i++ {
		level[i].lower = v.lower
	}
	for i := at - 1; i >= 0 && level[i].upper > v.upper; i-- {
		level[i].upper = v.upper
	}
}

// children returns the bounds that the children of v give it; for a leaf, those that its
// children would have.
func (t *Tree) children(v *node) (lower, upper float64) {
	if v.split {
		i, _ := t.find(v.depth+1, 2*v.place)
		return t.levels[v.depth+1][i].lower, t.levels[v.depth+1][i+1].upper
	}
	upper = t.config.Top
	for depth, place := v.depth+1, 2*v.place; depth <= maxDepth; depth, place = depth+1, 2*place {
		i, _ := t.find(depth, place)
		low, high := t.around(depth, i)
		lower, upper = math.Max(lower, low), math.Min(upper, high)
	}
	return lower, upper
}

// Bounds returns the published bounds at a/l = x, which may cross.
func (t *Tree) Bounds(x float64) (lower, upper float64) {
	upper = t.config.Top
	last := t.levels[0][0]
	for v := last; v != nil; v = t.below(v, x) {
		lower, upper, last = math.Max(lower, v.lower), math.Min(upper, v.upper), v
	}
	low, high := t.children(last)
	return math.Max(lower, low), math.Min(upper, high)
}

// Predict returns the band between the published bounds, whichever is the
// lower one, around their middle.
func (t *Tree) Predict(allocation, load float64) trimtab.Band {
	x := 0.0
	if load > 0 && allocation >= 0 {
		x = math.Min(allocation/load, t.config.Width)
	}
	a, b := t.Bounds(x)
	return trimtab.Band{Lower: math.Max(0, math.Min(a, b)), Mean: math.Max(0, (a+b)/2), Upper: math.Max(0, math.Max(a, b))}
}

// Snapshot is refused: nothing that lasts is to be built on it.
func (t *Tree) Snapshot() ([]byte, error) {
	return nil, fmt.Errorf("snapshot of the published tree: %w", trimtab.ErrUnsupported)
}

// Restore is refused.
func (t *Tree) Restore([]byte) error {
	return fmt.Errorf("restore the published tree: %w", trimtab.ErrInvalid)
}
