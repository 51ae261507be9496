package welfare

import (
	"sort"
	"testing"

	"pgregory.net/rapid"
)

func TestTheFewestUnitsForAUtilityAreThoseOfASearchThroughAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		for j := range p.Workloads {
			u, ok := utilityOf(&p.Workloads[j], p.Unit, utilities(0.3))
			if !ok {
				continue
			}
			for range 20 {
				at := rapid.Int64Range(-1, quantum+1).Draw(t, "level")
				if rapid.Bool().Draw(t, "of an allocation") {
					at = u.value(rapid.IntRange(0, 20).Draw(t, "units")) + rapid.Int64Range(-1, 1).Draw(t, "more")
				}
				lo := rapid.IntRange(0, 20).Draw(t, "lo")
				hi := lo + rapid.IntRange(0, 20).Draw(t, "more")
				want := lo + sort.Search(hi-lo, func(i int) bool { return u.value(lo+i) >= at })
				if got := u.least(at, lo, hi); got != want {
					t.Fatalf("%d units in [%d, %d] for %d, want %d", got, lo, hi, at, want)
				}
			}
		}
	})
}
