package trimtab

import (
	"cmp"
	"math"
	"slices"
)

// Urgent returns the indices of actions in the order of their urgency, for an actuator that
// cannot carry out all at once. A workload that has less than it needs for its SLO rises first,
// the one that lacks most before the others; then the one that rises most, as a ratio. Falls are
// in order of what they free, so that few falls free much. Rises and falls alternate, so that
// rises find room and the room is used.
func Urgent(actions []Action) []int {
	lacks := map[[2]string]float64{}
	for i := range actions {
		a := &actions[i]
		if of := [2]string{a.Workload, a.Resource}; a.Why.Demand != nil { // it is said with the first of several
			lacks[of] = math.Max(lacks[of], ratio(a.has(), *a.Why.Demand))
		}
	}
	var rises, falls []int
	for i := range actions {
		if actions[i].Set.Less(actions[i].Expect) {
			falls = append(falls, i)
		} else {
			rises = append(rises, i)
		}
	}
	lack := func(i int) float64 {
		return math.Max(1, lacks[[2]string{actions[i].Workload, actions[i].Resource}])
	}
	slices.SortStableFunc(rises, func(i, j int) int {
		return cmp.Or(-cmp.Compare(lack(i), lack(j)), -cmp.Compare(actions[i].rise(), actions[j].rise()))
	})
	slices.SortStableFunc(falls, func(i, j int) int { return -cmp.Compare(actions[i].frees(), actions[j].frees()) })
	out := make([]int, 0, len(actions))
	for i := range max(len(rises), len(falls)) {
		if i < len(falls) {
			out = append(out, falls[i])
		}
		if i < len(rises) {
			out = append(out, rises[i])
		}
	}
	return out
}

// has returns what the workload has, all instances together.
func (a *Action) has() float64 {
	switch {
	case a.Of != nil:
		return a.Of.From
	case a.Expect.Unlimited:
		return math.Inf(1)
	}
	return a.Expect.Value
}

// rise returns by what ratio the knob rises.
func (a *Action) rise() float64 {
	if a.Set.Unlimited {
		return math.Inf(1)
	}
	return ratio(a.Expect.Value, a.Set.Value)
}

// frees returns how much a fall frees.
func (a *Action) frees() float64 {
	if a.Expect.Unlimited {
		return math.Inf(1)
	}
	return a.Expect.Value - a.Set.Value
}

// ratio returns to over from, and +Inf from nothing.
func ratio(from, to float64) float64 {
	if !(from > 0) {
		return math.Inf(1)
	}
	return to / from
}
