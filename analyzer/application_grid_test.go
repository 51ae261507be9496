package analyzer

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestAGridSaysWhereInItWhatAMemberHasStands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least, most := rapid.Float64Range(0, 1).Draw(t, "min"), rapid.Float64Range(2, 200).Draw(t, "max")
		now := rapid.Float64Range(1, 2).Draw(t, "now")
		at, here := grid(least, most, now)
		if at[here] != now || !slices.IsSorted(at) {
			t.Fatalf("%v at %d of %v", now, here, at)
		}
		if at, here := grid(least, most, most); at[here] != most || len(at) != gridKnots {
			t.Fatalf("%v at %d of %v", most, here, at)
		}
	})
}
