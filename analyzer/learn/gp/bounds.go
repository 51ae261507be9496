package gp

import (
	"math"

	"github.com/trimtab/trimtab/internal/num"
)

const (
	// resolution is the least half width of a band, relative to the highest
	// performance: nothing finer is claimed.
	resolution = 5e-5
	// doubtless is how many standard errors, and worthFall how large a share
	// of the highest performance, the performance must fall by for more
	// resource to be called worse.
	doubtless, worthFall = 4.5, 0.02
)

// bound turns means and variances into bounds and adds what monotonicity
// says, except where the data deny it: points inside gaps are between the
// bins around them, and the isotonic regression of mean and bounds, with the
// same weights, keeps them in order.
func (f *fit) bound() {
	for i := range f.nodes {
		k := &f.nodes[i]
		if !k.observed {
			k.unit = f.unitAt(k.mean)
		}
		k.lower, k.upper = f.interval(k)
		k.lower, k.upper = min(k.lower, k.mean-resolution*f.top), max(k.upper, k.mean+resolution*f.top)
	}
	f.monotone()
	top := f.mode.highest()
	for i := range f.nodes {
		k := &f.nodes[i]
		k.mean = max(0, min(top, k.mean))
		// Not clipped yet: the load's effect is still to come.
		k.lower, k.upper = min(k.mean, k.lower), max(k.mean, k.upper)
	}
	f.abruptness()
}

// abruptness compares each rise with the smaller of those beside it.
func (f *fit) abruptness() {
	rise := func(i int) float64 {
		if i < 1 || i >= len(f.nodes) {
			return 0
		}
		return math.Abs(f.nodes[i].mean - f.nodes[i-1].mean)
	}
	before, now := 0.0, rise(1)
	for i := 1; i < len(f.nodes); i++ {
		after := rise(i + 1)
		f.nodes[i].abrupt = 0
		if beside := min(before, after); now > beside {
			f.nodes[i].abrupt = 1 - beside/now
		}
		before, now = now, after
	}
}

// monotone regresses each run of nodes between falls.
func (f *fit) monotone() {
	n := len(f.leaf)
	f.y, f.weight = resize(f.y, n), resize(f.weight, n)
	for i := range f.leaf {
		f.y[i], f.weight[i] = f.leaf[i].y, 1/f.leaf[i].r
	}
	f.isotonic(f.y, f.weight)
	f.runs = f.runs[:0]
	for a, b := 0, 0; a < n; a = b {
		for b = a + 1; b < n && f.y[b] == f.y[a]; b++ {
		}
		if b-a > 1 && f.fallen(f.leaf[a:b], f.weight[a:b]) {
			f.runs = append(f.runs, run{f.leaf[a].node, f.leaf[b-1].node + 1})
		}
	}
	f.falls, f.tail = len(f.runs) > 0, false
	from := 0
	for _, r := range f.runs {
		f.ascend(from, r.from)
		from = r.to
	}
	f.tail = f.falls && from == len(f.nodes)
	f.ascend(from, len(f.nodes))
}

// run is a range of nodes, [from, to).
type run struct{ from, to int }

// fallen reports whether the bins that isotonic regression levels fall beyond
// doubt: whether some cut splits them into a better and then a worse part.
func (f *fit) fallen(bins []leafFit, weight []float64) bool {
	all, mass := 0.0, 0.0
	for i := range bins {
		all += bins[i].y * weight[i]
		mass += weight[i]
	}
	sum, w := 0.0, 0.0
	for i := range bins[:len(bins)-1] {
		sum += bins[i].y * weight[i]
		w += weight[i]
		// d = left/w - right/(mass-w), times both, to divide nothing.
		both := w * (mass - w)
		d := sum*(mass-w) - (all-sum)*w
		if d > worthFall*f.top*both && d*d > doubtless*doubtless*mass*both {
			return true
		}
	}
	return false
}

func (f *fit) isotonic(y, weight []float64) {
	if cap(f.blocks) < len(y) {
		f.blocks = make([]num.Block, 0, maxNodes)
	}
	num.Isotonic(y, weight, f.blocks)
}

// ascend regresses the nodes [a, b).
func (f *fit) ascend(a, b int) {
	if b-a < 2 {
		return
	}
	for i := a + 1; i < b; i++ {
		if k := &f.nodes[i]; !k.observed {
			k.lower = min(k.mean, max(k.lower, f.nodes[i-1].lower))
		}
	}
	for i := b - 2; i >= a; i-- {
		if k := &f.nodes[i]; !k.observed {
			k.upper = max(k.mean, min(k.upper, f.nodes[i+1].upper))
		}
	}
	y, weight := resize(f.y, b-a), resize(f.weight, b-a)
	nodes := f.nodes[a:b]
	for i := range nodes {
		y[i], weight[i] = nodes[i].mean, 1/nodes[i].variance
	}
	f.isotonic(y, weight)
	for i := range nodes {
		nodes[i].mean, y[i] = y[i], nodes[i].lower
	}
	f.isotonic(y, weight)
	for i := range nodes {
		nodes[i].lower, y[i] = y[i], nodes[i].upper
	}
	f.isotonic(y, weight)
	for i := range nodes {
		nodes[i].upper = y[i]
	}
	f.y, f.weight = y, weight
}

// interval returns the bounds at one node. A fraction has the score interval
// for as many requests as its variance stands for, which is right next to 0
// and 1 too (E. Wilson, JASA 22, 1927); a number has the normal one.
func (f *fit) interval(k *node) (lower, upper float64) {
	if f.mode != fraction {
		half := f.z * math.Sqrt(k.variance)
		return k.mean - half, k.mean + half
	}
	p := max(0, min(1, k.mean))
	c := f.z * f.z * k.variance / k.unit // z²/n
	half, by := math.Sqrt(c*(p*(1-p)+c/4)), 1/(1+c)
	return (p + c/2 - half) * by, (p + c/2 + half) * by
}
