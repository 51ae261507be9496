package autoscale

import (
	"math"
	"time"
)

// Histogram has the sum of the weights of samples, by value. The weights halve in every half-life.
// Buckets grow by 5%.
type Histogram struct {
	first, epsilon float64
	weights        []float64
	total          float64
	halfLife       time.Duration
	reference      time.Time
}

const (
	growth   = 1.05
	halfLife = 24 * time.Hour
	// shift is the exponent of 2 at which weights are scaled to a later reference time.
	shift = 100
	// leastWeight is the weight of a CPU sample; a bucket with less than a thousandth of it counts
	// as empty.
	leastWeight = 0.1
)

// NewHistogram returns a histogram for values up to most; its first bucket ends at first.
func NewHistogram(first, most float64) *Histogram {
	n := int(math.Ceil(math.Log(most*(growth-1)/first+1)/math.Log(growth))) + 1
	return &Histogram{first: first, epsilon: 0.001 * leastWeight, weights: make([]float64, n), halfLife: halfLife}
}

// bucket returns the index of the bucket of a value: bucket i begins at first (growth^i −
// 1)/(growth − 1).
func (h *Histogram) bucket(v float64) int {
	if v < h.first {
		return 0
	}
	return min(int(math.Log(v*(growth-1)/h.first+1)/math.Log(growth)), len(h.weights)-1)
}

func (h *Histogram) begin(i int) float64 {
	return h.first * (math.Pow(growth, float64(i)) - 1) / (growth - 1)
}

// factor returns the factor by which the weight of a sample of that time is multiplied.
func (h *Histogram) factor(at time.Time) float64 {
	if h.reference.IsZero() {
		h.reference = at.Round(h.halfLife)
	}
	if at.Sub(h.reference) > shift*h.halfLife {
		to := at.Round(h.halfLife)
		by := math.Exp2(-math.Round(float64(to.Sub(h.reference)) / float64(h.halfLife)))
		for i := range h.weights {
			h.weights[i] *= by
		}
		h.total *= by
		h.reference = to
	}
	return math.Exp2(float64(at.Sub(h.reference)) / float64(h.halfLife))
}

// Add adds a sample. It ignores an invalid value.
func (h *Histogram) Add(at time.Time, v, weight float64) {
	if !(v >= 0 && v <= math.MaxFloat64) || !(weight > 0 && weight <= math.MaxFloat64) {
		return
	}
	w := weight * h.factor(at)
	h.weights[h.bucket(v)] += w
	h.total += w
}

// Remove removes a sample.
func (h *Histogram) Remove(at time.Time, v, weight float64) {
	i, w := h.bucket(v), weight*h.factor(at)
	if w > h.weights[i]-h.epsilon {
		w = h.weights[i]
	}
	h.weights[i] -= w
	h.total -= w
}

// Quantile returns the upper end of the bucket with the quantile; 0 if there are no samples.
func (h *Histogram) Quantile(q float64) float64 {
	from, last := -1, -1
	for i, w := range h.weights {
		if w < h.epsilon {
			continue
		}
		if last = i; from < 0 {
			from = i
		}
	}
	if from < 0 {
		return 0
	}
	sum, at := 0.0, from
	for ; at < last; at++ {
		if sum += h.weights[at]; sum >= q*h.total {
			break
		}
	}
	return h.begin(min(at+1, len(h.weights)-1))
}
