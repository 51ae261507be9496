package need

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab/planner/policy"
)

// Answer is the allocation of a pool that has enough for all needs.
type Answer struct {
	// Need is each workload's need at κ* plus its share for draining its backlog; Aim is Need plus
	// its share of the leftover capacity. Both in units.
	Need, Aim []int
	// Short marks the workloads with less than they need at Confidence, which is at most κ*.
	Short      []bool
	Confidence float64
	// Stays: no workload is short, and the current allocations fit, so that none need be moved.
	Stays bool
}

// Divide divides units among workloads by their needs, and reports whether there are enough. fits
// reports whether needs, plus the shares for backlogs (late, may be nil), fit into the pool and its
// hosts.
func Divide(all []Workload, units int, fits func(need, late []int) bool) (a Answer, ok bool) {
	need, total := at(all, -1)
	if !fits(need, nil) {
		return a, false
	}
	late := drained(need, all, units-total)
	low, high := -1.0, 1.0
	for confidence := 1.0; high-low > 1e-3; confidence = (low + high) / 2 {
		more, _ := at(all, confidence)
		if !fits(more, late) {
			high = confidence
			continue
		}
		if need, low = more, confidence; confidence == 1 {
			break
		}
	}
	a.Confidence = math.Min(low, enough)
	least, _ := at(all, a.Confidence)
	for i := range need {
		need[i] = min(need[i]+late[i], all[i].Max)
		least[i] = min(least[i]+late[i], all[i].Max)
	}
	a.Need, a.Aim, a.Short = need, headroom(need, all, units, fits), make([]bool, len(all))
	held := 0
	for i := range all {
		w := &all[i]
		held += policy.UpUnits(w.Has, w.Unit)
		a.Short[i] = w.Known && w.Has < w.Enough*float64(least[i])*w.Unit-policy.Grain
	}
	a.Stays = !slices.Contains(a.Short, true) && held <= units
	return a, true
}

// at returns the needs at confidence κ, without backlogs, and their sum.
func at(all []Workload, confidence float64) (need []int, total int) {
	need = make([]int, len(all))
	for i := range all {
		need[i] = all[i].At(confidence)
		total += need[i]
	}
	return need, total
}

// drained divides the leftover units among the backlogs; each gets at most what drains it in time.
func drained(need []int, all []Workload, left int) []int {
	late, asks := make([]int, len(all)), 0
	for i := range all {
		late[i] = max(0, min(all[i].Waiting, all[i].Max-need[i]))
		asks += late[i]
	}
	if asks > left {
		for i := range late {
			late[i] = late[i] * left / asks
		}
	}
	return late
}

// headroom divides all units in proportion to the needs. Each workload gets at least its need, and
// at most Easy if that is more.
func headroom(need []int, all []Workload, units int, fits func(need, late []int) bool) []int {
	share := func(f float64) []int {
		aims := make([]int, len(need))
		for i, n := range need {
			aims[i] = min(max(int(math.Floor(f*float64(n)+policy.Grain)), n), max(all[i].Easy, n))
		}
		return aims
	}
	low, high := 1.0, float64(units)+1
	for range 50 {
		if f := (low + high) / 2; fits(share(f), nil) {
			low = f
		} else {
			high = f
		}
	}
	return share(low)
}
