package admission

import "math"

// histogram holds times in buckets that grow by a tenth, from 10 us on, each with a weight that
// decays.
type histogram struct {
	weight [buckets]float64
	total  float64
}

const (
	buckets    = 200
	lowest     = 10e-6
	growth     = 1.1
	remembered = 0.9 // of a weight, from one tick to the next
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

// quantile returns the upper border of the bucket in which the quantile q lies, 0 if nothing was
// added of late.
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
