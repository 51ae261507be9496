package admission

import "math"

// histogram counts durations in buckets that grow by 10%, from 10 µs on, with weights that decay.
type histogram struct {
	weight [buckets]float64
	total  float64
}

const (
	buckets    = 200
	lowest     = 10e-6
	growth     = 1.1
	remembered = 0.9 // fraction of a weight that remains after a tick
)

func (h *histogram) add(seconds float64) {
	i := 0
	if seconds > lowest {
		i = min(int(math.Log(seconds/lowest)/math.Log(growth)), buckets-1)
	}
	h.weight[i]++
	h.total++
}

func (h *histogram) decay() {
	h.total = 0
	for i := range h.weight {
		h.weight[i] *= remembered
		h.total += h.weight[i]
	}
}

// quantile returns the upper bound of the bucket with the quantile q, or 0 if nothing was added
// recently.
func (h *histogram) quantile(q float64) float64 {
	if h.total < 1 {
		return 0
	}
	left := q * h.total
	for i, w := range h.weight {
		if left -= w; left <= 0 && w > 0 {
			return lowest * math.Pow(growth, float64(i+1))
		}
	}
	return lowest * math.Pow(growth, buckets)
}
