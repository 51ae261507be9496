package spread

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab/planner/policy"
)

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

// Effective returns min_i a_i/f_i: what the workload gets out of its instances'
// amounts. It is 0 without instances; an instance without load does not count.
func Effective(amounts, shares []float64) float64 {
	least := math.Inf(1)
	for i, f := range shares {
		if f > 0 {
			least = math.Min(least, amounts[i]/f)
		}
	}
	if math.IsInf(least, 0) {
		return 0
	}
	return least
}

// Shares returns the load shares of the workload's instances.
func (w *Workload) Shares() []float64 {
	loads := make([]*float64, len(w.Instances))
	for i := range w.Instances {
		loads[i] = w.Instances[i].Load
	}
	return Shares(loads)
}

// Parts returns f_wh, the workload's load share on each host, in order of host, without the
// instances that cannot be read: the caller must subtract what those may hold from the host
// before it solves.
func (w *Workload) Parts() []policy.Part {
	var parts []policy.Part
	for i, f := range w.Shares() {
		if in := &w.Instances[i]; !in.Unreadable && f > 0 {
			parts = append(parts, policy.Part{Host: in.Host, Share: f})
		}
	}
	slices.SortStableFunc(parts, func(a, b policy.Part) int { return a.Host - b.Host })
	sums := parts[:0]
	for _, p := range parts {
		if n := len(sums); n > 0 && sums[n-1].Host == p.Host {
			sums[n-1].Share += p.Share
		} else {
			sums = append(sums, p)
		}
	}
	return sums
}

// Bounds returns the range of targets in which no instance is cut by its own bounds, in quanta:
// below least some instance would get more than its share, and beyond most the effective
// allocation does not rise. least may exceed most.
func (w *Workload) Bounds() (least, most float64) {
	most = math.Inf(1)
	for i, f := range w.Shares() {
		if in := &w.Instances[i]; f > 0 {
			least = math.Max(least, float64(in.Min)/f)
			most = math.Min(most, float64(in.Max)/f)
		}
	}
	return least, most
}
