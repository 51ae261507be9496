package gp

import (
	"math"

	"github.com/trimtab/trimtab/analyzer/learn/walk"
	"github.com/trimtab/trimtab/internal/num"
)

const (
	// resolution is the least half width of a band, relative to the highest
	// performance: nothing finer is claimed.
	resolution = 5e-5
	// doubtless is by how many standard errors, and worthFall by how large a share of the highest
	// performance, the performance must fall for more resource to be called worse.
	doubtless, worthFall = 4.5, 0.02
)

// bound turns means and variances into bounds and applies monotonicity, except where the data
// contradict it: points inside gaps are between the bins around them, and the isotonic regression
// of mean and bounds, with the same weights, keeps them in order.
func (f *fit) bound() {
	for i := range f.nodes {
		k := &f.nodes[i]
		if !k.Observed {
			k.Unit = f.UnitAt(k.Mean)
		}
		k.Lower, k.Upper = f.interval(k)
		// Branches, since they are seldom taken, and min would be waited for.
		if v := k.Mean - resolution*f.Top; v < k.Lower {
			k.Lower = v
		}
		if v := k.Mean + resolution*f.Top; v > k.Upper {
			k.Upper = v
		}
	}
	f.monotone()
	top := f.Mode.Highest()
	for i := range f.nodes {
		k := &f.nodes[i]
		k.Mean = max(0, min(top, k.Mean))
		// Not clipped yet: the load's effect is still to come.
		k.Lower, k.Upper = min(k.Mean, k.Lower), max(k.Mean, k.Upper)
	}
	f.abruptness()
}

// abruptness compares each rise with the smaller of its neighbours.
func (f *fit) abruptness() {
	rise := func(i int) float64 { return math.Abs(f.nodes[i].Mean - f.nodes[i-1].Mean) }
	n := len(f.nodes)
	before, now := 0.0, 0.0
	if n > 1 {
		now = rise(1)
	}
	for i := 1; i < n; i++ {
		after := 0.0
		if i+1 < n {
			after = rise(i + 1)
		}
		f.nodes[i].abrupt = 0
		if now > 0 {
			f.nodes[i].abrupt = max(0, 1-min(before, after)/now)
		}
		before, now = now, after
	}
}

// monotone regresses each run of nodes between falls.
func (f *fit) monotone() {
	n := len(f.leaf)
	y, weight := f.room(n)
	for i := range f.leaf {
		y[i], weight[i] = f.leaf[i].Y, 1/f.leaf[i].R
	}
	f.isotonic(y, weight)
	f.runs = f.runs[:0]
	for a, b := 0, 0; a < n; a = b {
		for b = a + 1; b < n && y[b] == y[a]; b++ {
		}
		if b-a > 1 && f.fallen(f.leaf[a:b], weight[a:b]) {
			f.runs = append(f.runs, run{int(f.home[a]), int(f.home[b-1]) + 1})
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

// fallen reports whether the bins that isotonic regression levels fall with certainty: whether
// some cut splits them into a better and then a worse part.
func (f *fit) fallen(bins []walk.Leaf, weight []float64) bool {
	all, mass := 0.0, 0.0
	for i := range bins {
		all += bins[i].Y * weight[i]
		mass += weight[i]
	}
	sum, w := 0.0, 0.0
	for i := range bins[:len(bins)-1] {
		sum += bins[i].Y * weight[i]
		w += weight[i]
		// d = left/w - right/(mass-w), times both, to divide nothing.
		both := w * (mass - w)
		d := sum*(mass-w) - (all-sum)*w
		if d > worthFall*f.Top*both && d*d > doubtless*doubtless*mass*both {
			return true
		}
	}
	return false
}

// room returns scratch memory for n values and weights: that of the path, whose results are in
// the nodes by now.
func (f *fit) room(n int) (y, weight []float64) { return f.path.Mean[:n], f.path.Variance[:n] }

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
		if k := &f.nodes[i]; !k.Observed {
			k.Lower = min(k.Mean, max(k.Lower, f.nodes[i-1].Lower))
		}
	}
	for i := b - 2; i >= a; i-- {
		if k := &f.nodes[i]; !k.Observed {
			k.Upper = max(k.Mean, min(k.Upper, f.nodes[i+1].Upper))
		}
	}
	y, weight := f.room(b - a)
	nodes := f.nodes[a:b]
	for i := range nodes {
		y[i], weight[i] = nodes[i].Mean, 1/nodes[i].Variance
	}
	f.isotonic(y, weight)
	for i := range nodes {
		nodes[i].Mean, y[i] = y[i], nodes[i].Lower
	}
	f.isotonic(y, weight)
	for i := range nodes {
		nodes[i].Lower, y[i] = y[i], nodes[i].Upper
	}
	f.isotonic(y, weight)
	for i := range nodes {
		nodes[i].Upper = y[i]
	}
}

// interval returns the bounds at one node. A fraction has the score interval
// for as many requests as its variance stands for, which is right next to 0
// and 1 too (E. Wilson, JASA 22, 1927); a number has the normal one.
func (f *fit) interval(k *node) (lower, upper float64) {
	if f.Mode != walk.Fraction {
		half := f.Z * math.Sqrt(k.Variance)
		return k.Mean - half, k.Mean + half
	}
	p := max(0, min(1, k.Mean))
	c := f.Z * f.Z * k.Variance / k.Unit // z²/n
	half, by := math.Sqrt(c*(p*(1-p)+c/4)), 1/(1+c)
	return (p + c/2 - half) * by, (p + c/2 + half) * by
}
