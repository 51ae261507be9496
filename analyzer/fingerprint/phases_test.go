package fingerprint

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mathext"
	"pgregory.net/rapid"
)

func TestStudentQuantilesAreThoseOfTheIntegral(t *testing.T) {
	above := 0.5 * math.Erfc(math.Sqrt2) // the mass of a normal above +2 sigma
	for _, freedom := range []float64{4.5, 6, 10, 30, 1000} {
		x := mathext.InvRegIncBeta(freedom/2, 0.5, 2*above)
		want := math.Sqrt(freedom * (1 - x) / x)
		if got := studentQuantile(freedom); math.Abs(got/want-1) > 1e-3 {
			t.Errorf("%v degrees of freedom: %v, want %v", freedom, got, want)
		}
	}
}

func TestWhatIsAroundAPhaseIsTheWeightedMomentsOfItsWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p phases
		type window struct{ x, y float64 }
		var windows []window
		for range rapid.IntRange(1, 60).Draw(t, "windows") {
			refs := rapid.Float64Range(0.01, 100).Draw(t, "references")
			if rapid.Bool().Draw(t, "near") {
				refs = rapid.Float64Range(2, 3).Draw(t, "near references")
			}
			here := phaseOf(Sample{References: Counted(refs)})
			y := rapid.Float64Range(-3, 3).Draw(t, "ln CPI")
			p.cell[here.cell].add(y)
			windows = append(windows, window{(float64(here.cell-byRefs) + 0.5) * step, y})
		}
		here := phaseOf(Sample{References: Counted(rapid.Float64Range(2, 3).Draw(t, "at"))})
		got := p.near(here)
		weight, squares, mean, variance, n := 0.0, 0.0, 0.0, 0.0, 0.0
		for _, w := range windows {
			if k := 1 - math.Abs(w.x-here.sign)/width; k > 0 {
				n, weight, squares, mean = n+1, weight+k, squares+k*k, mean+k*w.y
			}
		}
		mean /= weight
		for _, w := range windows {
			if k := 1 - math.Abs(w.x-here.sign)/width; k > 0 {
				variance += k * (w.y - mean) * (w.y - mean) / weight
			}
		}
		if got.n != n || n > 0 && (math.Abs(got.effective-weight*weight/squares) > 1e-9*n || math.Abs(got.mean-mean) > 1e-5 || math.Abs(got.variance-variance) > 1e-4) {
			t.Fatalf("%+v, want %v windows, effective %v, mean %v, variance %v", got, n, weight*weight/squares, mean, variance)
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
		from, to, _ := phase{cell: cell}.reach()
		if from > cell || to <= cell || to > cells {
			t.Errorf("cell %d: %d to %d", cell, from, to)
		}
	}
	for _, edge := range []int{byRefs, byCores} {
		if _, to, _ := (phase{cell: edge - 1}).reach(); to != edge {
			t.Errorf("cell %d is looked at with %d", edge-1, edge)
		}
		if from, _, _ := (phase{cell: edge}).reach(); from != edge {
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
		switch c := phaseOf(s).cell; {
		case s.References.Counted && (c < byRefs || c >= byCores), !s.References.Counted && s.Cores.Counted && (c < byCores || c >= cells),
			!s.References.Counted && !s.Cores.Counted && c != unsigned:
			t.Fatalf("%+v: cell %d", s, c)
		}
	})
}
