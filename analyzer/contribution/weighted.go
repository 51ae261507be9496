package contribution

import (
	"cmp"
	"math"
	"slices"
)

// weighted has values with weights: the adjusted count of the request in which a value was
// measured. With equal weights all results are the same as without weights.
type weighted struct {
	values []weightedValue
	// sum is the sum of the weights.
	sum float64
	// upTo has, by index, the sum of the weights up to and including that value, in units of the
	// mean weight, so that the last one is the number of values. squares is the sum of their
	// squares in that unit.
	upTo    []float64
	squares float64
}

type weightedValue struct{ value, weight float64 }

func (w *weighted) add(value, weight float64) {
	w.values = append(w.values, weightedValue{value, weight})
}

// sort sorts the values and computes the sums. It must be called after the last add.
func (w *weighted) sort() {
	slices.SortFunc(w.values, func(a, b weightedValue) int {
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.weight, b.weight))
	})
	w.sum = 0
	for _, v := range w.values {
		w.sum += v.weight
	}
	mean := w.sum / float64(len(w.values))
	w.upTo, w.squares = make([]float64, len(w.values)), 0
	sum := 0.0
	for i, v := range w.values {
		sum += v.weight / mean
		w.upTo[i] = sum
		w.squares += v.weight / mean * (v.weight / mean)
	}
}

func (w *weighted) len() int { return len(w.values) }

// total returns the last value of upTo.
func (w *weighted) total() float64 {
	if len(w.upTo) == 0 {
		return 0
	}
	return w.upTo[len(w.upTo)-1]
}

// effective returns the number of equally weighted values that would carry as much information:
//
//	(Σ w)² / Σ w²
//
// Source: Kish, Survey Sampling, 1965.
func (w *weighted) effective() float64 {
	if w.squares == 0 {
		return 0
	}
	return w.total() * w.total() / w.squares
}

// rank returns the index of quantile q.
func (w *weighted) rank(q float64) int {
	i, _ := slices.BinarySearchFunc(w.upTo, q*w.total(), func(upTo, x float64) int {
		if upTo <= x {
			return -1
		}
		return 1
	})
	return min(i, len(w.upTo)-1)
}

// quantile returns quantile q.
func (w *weighted) quantile(q float64) float64 { return w.values[w.rank(q)].value }

// from returns the fraction of the values at index i and after it, by weight.
func (w *weighted) from(i int) float64 {
	if i <= 0 {
		return 1
	}
	return 1 - w.upTo[i-1]/w.total()
}

// over returns the fraction of the values above x, by weight.
func (w *weighted) over(x float64) float64 {
	i, _ := slices.BinarySearchFunc(w.values, x, func(v weightedValue, x float64) int {
		if v.value <= x {
			return -1
		}
		return 1
	})
	if i == len(w.values) {
		return 0
	}
	return w.from(i)
}

// median returns the median, or 0 if there are no values.
func (w *weighted) median() float64 {
	if w == nil || len(w.values) == 0 {
		return 0
	}
	return w.quantile(0.5)
}

// mean returns the weighted mean, or 0 if there are no values.
func (w *weighted) mean() float64 {
	sum := 0.0
	for _, v := range w.values {
		sum += v.weight * v.value
	}
	if w.sum == 0 {
		return 0
	}
	return sum / w.sum
}

// of returns the fraction share of n, rounded to a whole number.
func of(share, n float64) int { return int(math.Round(share * n)) }
