package fingerprint

import "math"

// The cells of phases: one for windows without either measure, then those by references per 1000
// instructions, then those by cores. Both measures are divided into steps of 5%, from 0.01 to
// 1100.
const (
	step     = 0.05
	lowest   = 0.01
	perSign  = 232
	cells    = 1 + 2*perSign
	unsigned = 0
	byRefs   = 1
	byCores  = byRefs + perSign
)

// phase is where a window lies: in a cell, and by the logarithm of its sign.
type phase struct {
	cell int
	sign float64
}

// phaseOf returns the phase of a window.
func phaseOf(s Sample) phase {
	at := func(from int, v float64) phase {
		sign := math.Log(max(v, lowest) / lowest)
		return phase{from + int(min(perSign-1, sign/step)), sign}
	}
	switch {
	case s.References.Counted:
		return at(byRefs, s.References.Value)
	case s.Cores.Counted:
		return at(byCores, s.Cores.Value)
	}
	return phase{}
}

// reach returns the cells that are similar to a phase, from … to−1, and the measure at the middle
// of the first of them.
func (p phase) reach() (from, to int, sign float64) {
	first, last := unsigned, byRefs
	switch {
	case p.cell >= byCores:
		first, last = byCores, cells
	case p.cell >= byRefs:
		first, last = byRefs, byCores
	}
	cellsWide := int(math.Ceil(width / step))
	from, to = max(first, p.cell-cellsWide), min(last, p.cell+cellsWide+1)
	return from, to, (float64(from-first) + 0.5) * step
}

// spread is the number, mean and sum of squared deviations of ln x in one cell.
type spread struct {
	N    float32 `json:"n"`
	Mean float32 `json:"mean"`
	Sum2 float32 `json:"sum2"`
}

// most bounds N of a cell, so that what a program was before fades.
const most = 4096

func (s *spread) add(y float64) {
	n, mean, sum2 := float64(s.N), float64(s.Mean), float64(s.Sum2)
	if n >= most {
		sum2 *= 1 - 1/n
		n--
	}
	n++
	d := y - mean
	mean += d / n
	*s = spread{float32(n), float32(mean), float32(sum2 + d*(y-mean))}
}

// The model of one phase: ln x is normal with unknown mean and variance, and the
// variance has a prior of priorN values with the standard deviation priorSigma.
const (
	priorN     = 4
	priorSigma = 0.03
	// width is how far apart in ln sign windows have nothing in common.
	width = 0.28
	// enough is how many windows a phase needs to be judged, and nearby how many by their
	// weights.
	enough, nearby = 3, 1.5
)

// around sums the windows near a phase, each cell with the weight 1 − |distance| / width.
type around struct {
	// n is the number of windows, weight Σ w n, and effective (Σ w n)² / Σ w² n.
	n, weight, effective float64
	mean, variance       float64
}

// near looks around a phase.
func (p *phases) near(at phase) around {
	var a around
	squares, sum := 0.0, 0.0
	from, to, sign := at.reach()
	weight := func(i int) float64 {
		if at.cell == unsigned {
			return 1
		}
		return 1 - math.Abs(sign+float64(i-from)*step-at.sign)/width
	}
	for i := from; i < to; i++ {
		if w, n := weight(i), float64(p.cell[i].N); n > 0 && w > 0 {
			a.n += n
			a.weight += w * n
			squares += w * w * n
			sum += w * n * float64(p.cell[i].Mean)
		}
	}
	if a.n == 0 {
		return a
	}
	a.effective = a.weight * a.weight / squares
	a.mean = sum / a.weight
	for i := from; i < to; i++ {
		if w, c := weight(i), p.cell[i]; c.N > 0 && w > 0 {
			d := float64(c.Mean) - a.mean
			a.variance += w * (float64(c.Sum2) + float64(c.N)*d*d) / a.weight
		}
	}
	return a
}

// phases knows the distribution of an indicator in each phase of a program.
type phases struct {
	cell [cells]spread
	// margin is the factor by which the boundary is wider than the model's, learned from the
	// windows over it; at least 1, at most widest.
	margin float64
}

// typical returns the middle and the boundary of an indicator in a phase; false if too little of
// the phase was seen. With m, s² and n the mean, variance and effective number of the windows
// around it, and t the quantile of Student's distribution with as much mass above it as a normal
// has above +2 σ:
//
//	ln boundary = m + margin · t(n−1+priorN) · s · √(1 + 1/n)
//
// Two sigmas, not the paper's three: three of five windows must be over it.
func (p *phases) typical(at phase) (middle, boundary float64, ok bool) {
	a := p.near(at)
	if a.n < enough || a.effective < nearby {
		return 0, 0, false
	}
	n := a.effective
	freedom := n - 1 + priorN
	sigma := math.Sqrt((a.variance*n + priorN*priorSigma*priorSigma) / freedom * (1 + 1/n))
	above := max(1, p.margin) * studentQuantile(freedom) * sigma
	return math.Exp(a.mean), math.Exp(a.mean + min(above, 20)), true
}

const (
	// level is how many of the windows alone may be over the boundary.
	level = 0.01
	// rate is the learning rate of the margin: a window over the boundary widens it
	// by a quarter, which a hundred others take back.
	rate   = 0.25
	widest = 4
)

// judged updates the margin after a window in which the workload was alone: for any distribution,
// the share of windows over the boundary tends to at most level, as long as the margin is below
// widest.
//
// Source: Gibbs and Candès, Adaptive conformal inference under distribution shift, NeurIPS 2021,
// (2) and proposition 4.1.
func (p *phases) judged(over bool) {
	p.margin = max(1, p.margin)
	if over {
		p.margin = min(widest, p.margin+rate*(1-level))
	} else {
		p.margin = max(1, p.margin-rate*level)
	}
}

// studentQuantile returns the value that a variable with Student's distribution exceeds with the
// probability that a standard normal one exceeds 2, to 0.1% for 4 degrees of freedom, and better
// for more.
//
// Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5.
func studentQuantile(freedom float64) float64 {
	const (
		z  = 2.0
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

// explained returns what fraction of the variance of ln x the phases explain, η² adjusted for
// their number: 1 − (Σ within / (n − cells)) / (total / (n − 1)), in [0, 1].
func (p *phases) explained() float64 {
	n, mean, in := 0.0, 0.0, 0.0
	for _, c := range p.cell {
		if c.N > 0 {
			n, in = n+float64(c.N), in+1
			mean += float64(c.N) / n * (float64(c.Mean) - mean)
		}
	}
	within, total := 0.0, 0.0
	for _, c := range p.cell {
		d := float64(c.Mean) - mean
		within += float64(c.Sum2)
		total += float64(c.Sum2) + float64(c.N)*d*d
	}
	if n <= in || total <= 0 {
		return 0
	}
	return max(0, 1-within/(n-in)/(total/(n-1)))
}
