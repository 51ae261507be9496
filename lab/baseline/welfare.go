package baseline

import (
	"cmp"
	"math"
	"slices"
)

// greedy is Greedy-EW: a unit from each of the half with the higher utility to
// one of the other half.
type greedy struct{}

// Name returns "greedy-egalitarian".
func (greedy) Name() string { return "greedy-egalitarian" }

// Next moves at most one unit of every job.
func (greedy) Next(units int, jobs []Job) ([]int, error) {
	out, err := current(units, jobs)
	if err != nil {
		return nil, err
	}
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(jobs[a].Utility, jobs[b].Utility) })
	for low, high := 0, len(order)-1; low < high; low, high = low+1, high-1 {
		poor, rich := order[low], order[high]
		if jobs[poor].Utility < jobs[rich].Utility && out[rich] > jobs[rich].Min && out[poor] < jobs[poor].Max {
			out[rich]--
			out[poor]++
		}
	}
	return out, nil
}

// current returns what the jobs have within their bounds, cut to the units where
// that is too much.
func current(units int, jobs []Job) ([]int, error) {
	out, wants := make([]int, len(jobs)), make([]float64, len(jobs))
	sum := 0
	for i := range jobs {
		j := &jobs[i]
		out[i] = min(max(j.Units, j.Min), j.Max)
		wants[i] = float64(j.Units)
		sum += out[i]
	}
	if sum > units {
		return share(units, jobs, wants)
	}
	return out, nil
}

// minerva sets shares in proportion to allocation over utility.
type minerva struct{}

// leastUtility stands for a utility near 0, which would take everything.
const leastUtility = 0.01

// Name returns "minerva".
func (minerva) Name() string { return "minerva" }

// Next divides all units in proportion.
func (minerva) Next(units int, jobs []Job) ([]int, error) {
	weight := make([]float64, len(jobs))
	left, sum := float64(units), 0.0
	for i := range jobs {
		weight[i] = math.Max(float64(jobs[i].Units), 1) / math.Max(jobs[i].Utility, leastUtility)
		left -= float64(jobs[i].Min)
		sum += weight[i]
	}
	if left < 0 {
		return nil, infeasible(units, jobs)
	}
	amounts := make([]float64, len(jobs))
	for i := range jobs {
		amounts[i] = math.Min(float64(jobs[i].Min)+left*weight[i]/sum, float64(jobs[i].Max))
	}
	return whole(units, jobs, amounts), nil
}
