package alternative_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/trimtab/trimtab/planner/alternative"
	"github.com/trimtab/trimtab/planner/policy"
)

// solved is a pool of 10 units of 0.5 in which a falls from 6 to 4, b rises from 2 to 4, and c
// stays at 2. The objective is what b has, in units.
func solved(units int) *alternative.Solution {
	return &alternative.Solution{
		Problem: &policy.Problem{Units: units, Unit: 0.5, Workloads: []policy.Workload{
			{Name: "a", Max: 10, Current: 6}, {Name: "b", Max: 10, Current: 2}, {Name: "c", Max: 10, Current: 2}}},
		Answer: policy.Solution{Units: []int{4, 4, 2}},
		Score:  func(units []int) float64 { return float64(units[1]) },
	}
}

func TestTheChoicesThatWereRejectedAreToldWithTheirWorth(t *testing.T) {
	for name, c := range map[string]struct {
		units, at int
		now, set  float64
		want      []string
	}{
		// It can only stay where b, which rises, gives its 2 units up.
		"one that falls":                  {10, 0, 3, 2, []string{"3 2 stay, and take it from b", "2.5 3 one unit more, taken from b"}},
		"one that falls, with room":       {12, 0, 3, 2, []string{"3 4 stay, all others at their targets", "2.5 3 one unit more, taken from b"}},
		"one that rises, half of the way": {10, 1, 1, 1.5, []string{"1 2 stay, all others at their targets", "2 4 all the way at once: the step", "1.5 3 one unit less, given to a"}},
	} {
		var got []string
		for _, a := range solved(c.units).Of(c.at, c.now, c.set, "the step") {
			got = append(got, fmt.Sprintf("%v %v %s", a.Set, a.Objective, a.Why))
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWithoutAnObjectiveOrARivalThereIsLittleToTell(t *testing.T) {
	s := solved(10)
	s.Score = nil
	var none *alternative.Solution
	if s.Of(0, 3, 2, "") != nil || none.Of(0, 3, 2, "") != nil {
		t.Error("alternatives without a worth")
	}
	alone := &alternative.Solution{Problem: &policy.Problem{Units: 10, Unit: 0.5, Workloads: []policy.Workload{{Name: "a", Max: 10, Current: 6}}},
		Answer: policy.Solution{Units: []int{4}}, Score: func(units []int) float64 { return float64(units[0]) }}
	if got := alone.Of(0, 3, 2, ""); len(got) != 1 || got[0].Set != 3 {
		t.Errorf("%+v", got)
	}
}
