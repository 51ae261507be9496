package fingerprint

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestStudentQuantilesAreThoseOfTheTables(t *testing.T) {
	for freedom, want := range map[float64]float64{6: 3.142668, 10: 2.763769, 30: 2.457262, 1000: 2.330083} {
		if got := studentQuantile(freedom); math.Abs(got/want-1) > 2.5e-4 {
			t.Errorf("%v degrees of freedom: %v, want %v", freedom, got, want)
		}
	}
}

func TestTwoCellsTogetherAreOneOfAllValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-5, 5), 1, 60).Draw(t, "values")
		cut := rapid.IntRange(0, len(values)).Draw(t, "cut")
		var a, b spread
		for i, x := range values {
			if i < cut {
				a.add(x)
			} else {
				b.add(x)
			}
		}
		got := a.join(b)
		mean, squares := 0.0, 0.0
		for _, x := range values {
			mean += x / float64(len(values))
		}
		for _, x := range values {
			squares += (x - mean) * (x - mean)
		}
		if int(got.N) != len(values) || math.Abs(got.Mean-mean) > 1e-9 || math.Abs(got.Sum2-squares) > 1e-7 {
			t.Fatalf("%+v, want %d values of mean %v and squares %v", got, len(values), mean, squares)
		}
	})
}

// Whatever comes, windows over the boundary are at most level of all, and as many
// more as it takes to widen the margin: proposition 4.1 of the source.
func TestTheMarginKeepsTheRateItPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p phases
		over, widened := 0, false
		windows := rapid.SliceOfN(rapid.Float64Range(0, 3), 1, 2000).Draw(t, "needed margins")
		for _, needs := range windows {
			is := needs > max(1, p.margin)
			p.judged(is)
			if is {
				over++
			}
			widened = widened || p.margin >= widest
		}
		if most := level*float64(len(windows)) + (widest-1)/rate; !widened && float64(over) > most+1e-9 {
			t.Fatalf("%d of %d over, want at most %v", over, len(windows), most)
		}
	})
}

func TestOnlyPhasesOfOneSignAreLookedAtTogether(t *testing.T) {
	for cell := range cells {
		from, to := reach(cell)
		if from > cell || to <= cell || to-from > 3 || to > cells {
			t.Errorf("cell %d: %d to %d", cell, from, to)
		}
	}
	for _, edge := range []int{byRefs, byCores} {
		if _, to := reach(edge - 1); to != edge {
			t.Errorf("cell %d is looked at with %d", edge-1, edge)
		}
		if from, _ := reach(edge); from != edge {
			t.Errorf("cell %d is looked at with %d", edge, from)
		}
	}
}

func TestEveryWindowHasAPhase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Sample{}
		if rapid.Bool().Draw(t, "references") {
			s.References = Counted(rapid.Float64Range(0, 1e6).Draw(t, "references"))
		}
		if rapid.Bool().Draw(t, "cores") {
			s.Cores = Counted(rapid.Float64Range(0, 1e6).Draw(t, "cores"))
		}
		switch c := cellOf(s); {
		case s.References.Counted && (c < byRefs || c >= byCores), !s.References.Counted && s.Cores.Counted && (c < byCores || c >= cells),
			!s.References.Counted && !s.Cores.Counted && c != unsigned:
			t.Fatalf("%+v: cell %d", s, c)
		}
	})
}
