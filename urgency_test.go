package trimtab_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

// turning is an action on one pod of a workload; demand 0 says nothing of its SLO.
func turning(workload string, from, to, demand float64) trimtab.Action {
	a := trimtab.Action{KnobID: trimtab.KnobID{Workload: workload, Resource: trimtab.CPU}, Expect: trimtab.Units(from), Set: trimtab.Units(to)}
	if demand > 0 {
		a.Why.Demand = &demand
	}
	return a
}

func TestWhoMissesItsSLORisesFirstAndRisesAndFallsTakeTurns(t *testing.T) {
	short := turning("short", 2, 2.2, 2.4)
	short.Of = &trimtab.Whole{Instances: 2, From: 1, To: 1.1} // it has 1 of 2.4
	actions := []trimtab.Action{
		turning("enough", 1, 3, 0.5), turning("lacks a little", 1, 1.2, 1.2), short, turning("short", 2, 2.1, 0),
		turning("frees little", 1, 0.9, 0), turning("frees much", 4, 2, 0),
	}
	var got []string
	for _, i := range trimtab.Urgent(actions) {
		got = append(got, actions[i].Workload)
	}
	if want := []string{"frees much", "short", "frees little", "short", "lacks a little", "enough"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestUrgentListsEachActionOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Custom(func(t *rapid.T) trimtab.Amount {
			if rapid.Bool().Draw(t, "unlimited") {
				return trimtab.Unlimited()
			}
			return trimtab.Units(rapid.Float64Range(0, 8).Draw(t, "units"))
		})
		var actions []trimtab.Action
		for range rapid.IntRange(0, 20).Draw(t, "n") {
			a := turning(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "workload"), 1, 1, rapid.Float64Range(0, 3).Draw(t, "demand"))
			a.Expect, a.Set = amount.Draw(t, "expect"), amount.Draw(t, "set")
			actions = append(actions, a)
		}
		order := trimtab.Urgent(actions)
		slices.Sort(order)
		for i, at := range order {
			if i != at || len(order) != len(actions) {
				t.Fatalf("%v of %d actions", order, len(actions))
			}
		}
	})
}
