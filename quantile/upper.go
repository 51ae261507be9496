package quantile

import "math"

// Upper returns an upper confidence bound of the quantile q of the distribution that the
// counted values were drawn from, whatever that distribution is. n is how many values
// were drawn; the weights may add up to more where values were sampled. In order, the
// k-th of n values is the bound at the first k with
//
//	P(Bin(n, q) < k) >= confidence
//
// It assumes independent draws. ok is false while there is no such k: see [Needed].
func (h *Histogram) Upper(q, confidence, n float64) (bound float64, ok bool) {
	n = math.Floor(math.Min(n, 1e6)) // with more the bound hardly falls, and takes longer
	if h.total <= 0 || !(q > 0 && q < 1) || !(confidence > 0 && confidence < 1) || !(n >= Needed(q, confidence)) {
		return 0, false
	}
	low, high := math.Floor(n*q), n // the rank lies in (low, high]
	for high-low > 1 {
		if k := math.Floor((low + high) / 2); atLeast(k, n, q) <= 1-confidence {
			high = k
		} else {
			low = k
		}
	}
	v, _ := h.Quantile(high / n)
	return v * (gamma + 1) / 2, true // the upper border of the bucket
}

// Needed returns how many values [Histogram.Upper] needs: the least n with 1 - qⁿ >=
// confidence, at which the largest value is the bound.
func Needed(q, confidence float64) float64 {
	return math.Ceil(math.Log(1-confidence)/math.Log(q) - 1e-9)
}

// atLeast returns P(Bin(n, q) >= k) for k >= nq, where the terms fall from the first on.
func atLeast(k, n, q float64) float64 {
	if k > n {
		return 0
	}
	of := func(x float64) float64 { v, _ := math.Lgamma(x + 1); return v }
	term := math.Exp(of(n) - of(k) - of(n-k) + k*math.Log(q) + (n-k)*math.Log1p(-q))
	sum := 0.0
	for ; k <= n && term > 1e-12; k++ {
		sum += term
		term *= (n - k) / (k + 1) * q / (1 - q)
	}
	return sum
}
