package fingerprint

import "math"

// The cells of phases: one for windows that nothing tells apart, then those by
// references per 1000 instructions, then those by cores. Both are cut at steps of
// 22%, from 0.01 to 1100.
const (
	step      = 0.2
	lowest    = 0.01
	perSign   = 58
	cells     = 1 + 2*perSign
	unsigned  = 0
	byRefs    = 1
	byCores   = byRefs + perSign
	neighbour = 1
)

// cellOf returns the cell of a window.
func cellOf(s Sample) int {
	index := func(v float64) int {
		return int(max(0, min(perSign-1, math.Floor(math.Log(max(v, lowest)/lowest)/step))))
	}
	switch {
	case s.References.Counted:
		return byRefs + index(s.References.Value)
	case s.Cores.Counted:
		return byCores + index(s.Cores.Value)
	}
	return unsigned
}

// reach returns the cells that are looked at together with one, from … to−1.
func reach(cell int) (from, to int) {
	low, high := unsigned, byRefs
	switch {
	case cell >= byCores:
		low, high = byCores, cells
	case cell >= byRefs:
		low, high = byRefs, byCores
	}
	return max(low, cell-neighbour), min(high, cell+neighbour+1)
}

// spread is the number, mean and sum of squared deviations of ln x in one cell.
type spread struct {
	N          float32
	Mean, Sum2 float64
}

// most bounds N of a cell, so that what a program was before fades.
const most = 4096

func (s *spread) add(y float64) {
	if s.N >= most {
		s.Sum2 *= 1 - 1/float64(s.N)
		s.N--
	}
	s.N++
	d := y - s.Mean
	s.Mean += d / float64(s.N)
	s.Sum2 += d * (y - s.Mean)
}

// join returns what both saw (Chan, Golub and LeVeque, 1979).
func (s spread) join(o spread) spread {
	n := s.N + o.N
	if n == 0 {
		return spread{}
	}
	d := o.Mean - s.Mean
	w := float64(o.N) / float64(n)
	return spread{n, s.Mean + d*w, s.Sum2 + o.Sum2 + d*d*w*float64(s.N)}
}

// The model of one phase: ln x is normal with unknown mean and variance, and the
// variance has a prior of priorN values with the standard deviation priorSigma.
const (
	priorN     = 4
	priorSigma = 0.03
	// enough is how many windows a phase needs to be judged.
	enough = 3
	// level is how many of the windows alone may be over the boundary.
	level = 0.01
)

// phases knows the distribution of an indicator in each phase of a program.
type phases struct {
	cell [cells]spread
	// margin is by how much the boundary is wider than the model says, learned
	// from the windows over it; at least 1, at most widest.
	margin float64
}

const (
	widest = 4
	// rate is the learning rate of the margin: a window over the boundary widens it
	// by a quarter, which 100 more times as many others take back.
	rate = 0.25
)

// typical returns the middle and the boundary of an indicator in a phase; false
// where too little of the phase was seen. With n windows in this cell and its
// neighbours, their mean m and variance s² (with its prior), and t the quantile of
// Student's distribution:
//
//	ln boundary = m + margin · t(1 − level, n−1+priorN) · s · √(1 + 1/n)
func (p *phases) typical(cell int) (middle, boundary float64, ok bool) {
	var s spread
	from, to := reach(cell)
	for i := from; i < to; i++ {
		s = s.join(p.cell[i])
	}
	if s.N < enough {
		return 0, 0, false
	}
	n := float64(s.N)
	freedom := n - 1 + priorN
	sigma := math.Sqrt((s.Sum2 + priorN*priorSigma*priorSigma) / freedom * (1 + 1/n))
	above := max(1, p.margin) * studentQuantile(freedom) * sigma
	return math.Exp(s.Mean), math.Exp(s.Mean + min(above, 20)), true
}

// judged tells the margin how a window was that was alone: whatever the
// distribution, the share of windows over the boundary tends to at most level.
//
// Source: Gibbs and Candès, Adaptive conformal inference under distribution
// shift, NeurIPS 2021, (2) and proposition 4.1.
func (p *phases) judged(over bool) {
	p.margin = max(1, p.margin)
	if over {
		p.margin = min(widest, p.margin+rate*(1-level))
	} else {
		p.margin = max(1, p.margin-rate*level)
	}
}

// normalQuantile is what a standard normal variable is over with probability level.
const normalQuantile = 2.3263478740408408

// studentQuantile returns what a variable with Student's distribution is over with
// probability level, to 0.02% for 6 degrees of freedom, and better for more.
//
// Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5.
func studentQuantile(freedom float64) float64 {
	const (
		z  = normalQuantile
		z3 = z * z * z
		z5 = z3 * z * z
		z7 = z5 * z * z
		z9 = z7 * z * z
		g1 = (z3 + z) / 4
		g2 = (5*z5 + 16*z3 + 3*z) / 96
		g3 = (3*z7 + 19*z5 + 17*z3 - 15*z) / 384
		g4 = (79*z9 + 776*z7 + 1482*z5 - 1920*z3 - 945*z) / 92160
	)
	return z + (g1+(g2+(g3+g4/freedom)/freedom)/freedom)/freedom
}

// explained returns which part of the variance of ln x the phases account for, η²
// adjusted for their number: 1 − (Σ within / (n − cells)) / (total / (n − 1)), in
// [0, 1].
func (p *phases) explained() float64 {
	var all spread
	within, in := 0.0, 0.0
	for _, c := range p.cell {
		if c.N > 0 {
			all, within, in = all.join(c), within+c.Sum2, in+1
		}
	}
	n := float64(all.N)
	if n <= in || all.Sum2 <= 0 {
		return 0
	}
	return max(0, 1-within/(n-in)/(all.Sum2/(n-1)))
}
