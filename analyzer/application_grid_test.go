package analyzer

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestAGridSaysWhereInItWhatAMemberHasStands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &workload{Workload: Workload{Min: rapid.Float64Range(0, 1).Draw(t, "min"), Max: rapid.Float64Range(2, 200).Draw(t, "max")}}
		now := rapid.Float64Range(1, 2).Draw(t, "now")
		at, here := grid(w, now)
		if at[here] != now || !slices.IsSorted(at) {
			t.Fatalf("%v at %d of %v", now, here, at)
		}
		if at, here := grid(w, w.Max); at[here] != w.Max || len(at) != gridKnots {
			t.Fatalf("%v at %d of %v", w.Max, here, at)
		}
	})
}
