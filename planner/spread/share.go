package spread

import "math"

// Shares returns each instance's share of the load, which sum to 1. An instance whose load is
// unknown, nil, gets 1/n; the others divide the rest in proportion to their loads. A load that is
// negative, NaN or infinite counts as unknown.
func Shares(loads []*float64) []float64 {
	shares := make([]float64, len(loads))
	even := 1 / float64(len(loads))
	sum, rest := 0.0, 0.0
	for i, l := range loads {
		if shares[i] = even; known(l) {
			sum += *l
			rest += even
		}
	}
	if !(sum > 0) || math.IsInf(sum, 0) {
		return shares
	}
	for i, l := range loads {
		if known(l) {
			shares[i] = rest * (*l / sum)
		}
	}
	return shares
}

func known(load *float64) bool { return load != nil && *load >= 0 && !math.IsInf(*load, 0) }

// Shares returns the load shares of the workload's instances.
func (w *Workload) Shares() []float64 {
	loads := make([]*float64, len(w.Instances))
	for i := range w.Instances {
		loads[i] = w.Instances[i].Load
	}
	return Shares(loads)
}
