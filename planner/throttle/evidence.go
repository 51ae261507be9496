package throttle

import "math"

// evidence is a sequential probability ratio test of whether a victim recovered:
//
//	H1 recovered       a sample is over the boundary with probability ε
//	H0 as it was       … with probability q, that of the samples before
//	Λ = Σ over: ln(ε / q), below: ln((1−ε) / (1−q))
//
// Source: Wald, Sequential tests of statistical hypotheses, Ann. Math. Stat. 16,
// 1945, (3:17) and (3:18).
type evidence struct {
	over, below float64 // what one sample adds
	sum         float64
	n           int
}

const (
	// strays is ε, the probability that a sample of a healthy victim is over its boundary. For a
	// normal distribution one value in 740 is above +3 σ; real signals have heavier tails, and a
	// signal that is just recovering has a few more.
	strays = 0.05
	// q is limited to [leastOver, mostOver]: a few samples make it look more certain than it is.
	leastOver, mostOver = 0.3, 0.95
)

// newEvidence begins a test after n samples, of which over were over the boundary. The first of
// them is not counted: without it no trial would have begun. One sample of each kind is added
// (Laplace):
func newEvidence(over, n int) evidence {
	q := float64(over) / (float64(n) + 1)
	q = max(leastOver, min(q, mostOver))
	return evidence{over: math.Log(strays / q), below: math.Log((1 - strays) / (1 - q))}
}

// again restarts the test with the same q.
func (e *evidence) again() { e.sum, e.n = 0, 0 }

func (e *evidence) add(over bool) {
	e.n++
	if over {
		e.sum += e.over
	} else {
		e.sum += e.below
	}
}

// word is the result of a trial so far: undecided, recovered, not recovered, or no measurement.
type word uint8

const (
	open word = iota
	cured
	uncured
	unheard
)

// word returns the result of the test. alpha is the probability to call a victim recovered wrongly,
// beta that of the opposite error, n the number of tests that run at once. After most samples
// without a decision the victim counts as not recovered.
func (e *evidence) word(alpha, beta float64, n, most int) word {
	switch {
	case e.sum >= math.Log((1-beta)*float64(n)/alpha):
		return cured
	case e.sum <= math.Log(beta/(1-alpha)) || e.n >= most:
		return uncured
	}
	return open
}
