package fair

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab"
)

// Result is the answer of [NJC], in the unit of the capacity.
type Result struct {
	// Allocation is in the order of the demands.
	Allocation []float64 `json:"allocation"`
	// Share is the allocation per unit of weight of workloads whose demand is not met; nil if every
	// demand is met.
	Share *float64 `json:"share"`
	// Unused is the capacity that no workload demands.
	Unused float64 `json:"unused"`
	// Useful is Σ min(a_j, d_j) (equation 8).
	Useful float64 `json:"useful"`
	// Fairness is F_NJC (equation 3), in [0, 1], with utilities linear up to
	// the demand.
	Fairness float64 `json:"f_njc"`
}

// NJC divides capacity by the procedure, over real numbers: in each round the share is what is
// left per unit of weight left, and every demand strictly below its share is met; when there is
// none, the rest is split by weight. weights may be nil: all 1. It takes O(n log n) time and
// returns an error that is trimtab.ErrInvalid for numbers that are not finite, negative demands,
// weights <= 0, or lists of different lengths.
func NJC(capacity float64, demands, weights []float64) (Result, error) {
	weights, err := validNJC(capacity, demands, weights)
	if err != nil {
		return Result{}, err
	}
	order := make([]int, len(demands))
	left, total := capacity, 0.0
	for i := range order {
		order[i] = i
		total += weights[i]
	}
	r := Result{Allocation: make([]float64, len(demands))}
	entitled := 0.0
	if total > 0 {
		entitled = capacity / total
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return compare(demands[i]/weights[i], demands[j]/weights[j])
	})
	// rest[i] is the weight from the i-th of the order on, summed from the end, so that rounding
	// leaves no weight where there is none.
	rest := make([]float64, len(order)+1)
	for i := len(order) - 1; i >= 0; i-- {
		rest[i] = rest[i+1] + weights[order[i]]
	}
	for len(order) > 0 {
		share := left / rest[0]
		n := 0
		for n < len(order) && demands[order[n]] < share*weights[order[n]] {
			n++
		}
		if n == 0 {
			r.Share = &share
			for _, j := range order {
				r.Allocation[j] = share * weights[j]
			}
			break
		}
		met := slices.Clone(order[:n])
		slices.Sort(met)
		for _, j := range met {
			r.Allocation[j] = demands[j]
			left -= demands[j]
		}
		order, rest = order[n:], rest[n:]
	}
	if r.Share == nil {
		r.Unused = math.Max(0, left)
	}
	r.Useful, r.Fairness = usefulness(r.Allocation, demands, weights, entitled)
	return r, nil
}

// usefulness returns Σ min(a, d) and F_NJC.
func usefulness(allocation, demands, weights []float64, entitled float64) (useful, fairness float64) {
	fairness = 1
	for j, d := range demands {
		useful += math.Min(allocation[j], d)
		if d == 0 {
			continue
		}
		if due := math.Min(1, entitled*weights[j]/d); due > 0 {
			fairness = math.Min(fairness, math.Min(1, allocation[j]/d)/due)
		}
	}
	return useful, fairness
}

func validNJC(capacity float64, demands, weights []float64) ([]float64, error) {
	if weights == nil {
		weights = make([]float64, len(demands))
		for i := range weights {
			weights[i] = 1
		}
	}
	if len(weights) != len(demands) {
		return nil, trimtab.Invalidf("njc: %d demands, %d weights", len(demands), len(weights))
	}
	if !(capacity >= 0) || math.IsInf(capacity, 0) {
		return nil, trimtab.Invalidf("njc: capacity %v: want a finite number >= 0", capacity)
	}
	sum := 0.0
	for i, d := range demands {
		if !(d >= 0) || math.IsInf(d, 0) {
			return nil, trimtab.Invalidf("njc: demand %v: want a finite number >= 0", d)
		}
		if !(weights[i] > 0) || math.IsInf(weights[i], 0) {
			return nil, trimtab.Invalidf("njc: weight %v: want a finite number > 0", weights[i])
		}
		sum += weights[i]
	}
	if math.IsInf(sum, 0) {
		return nil, trimtab.Invalidf("njc: the sum of the weights is not finite")
	}
	return weights, nil
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
