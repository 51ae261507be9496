package need_test

import (
	"slices"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/need"
)

// worth is a workload of units of 0.1 whose performance rises from 0 to 1 over so many cores per
// 10 requests/s: its SLO of 0.9 takes 0.9 of them at a load of 10. 20 are its upper bound.
func worth(cores, has float64) need.Workload {
	return need.Workload{
		Curve: &trimtab.Curve{Load: 20, Level: 0.9, Knots: []trimtab.Knot{{}, {Allocation: 2 * cores, Band: trimtab.Band{Lower: 1, Mean: 1, Upper: 1}}}},
		Load:  &trimtab.LoadForecast{Now: 10, Mean: 10, Upper: 20}, SLO: 0.9, Has: has, Unit: 0.1, Max: 100, Easy: 100, Enough: 1, Known: true,
	}
}

// within lets so many units be given.
func within(units int) func(need, late []int) bool {
	return func(need, late []int) bool {
		sum := 0
		for _, v := range need {
			sum += v
		}
		for _, v := range late {
			sum += v
		}
		return sum <= units
	}
}

func TestANeedIsReadOffTheCurveAtTheLoadOfItsConfidence(t *testing.T) {
	w := worth(1, 1)
	for confidence, want := range map[float64]int{-1: 9, 0: 9, 0.5: 14, 1: 18} { // 0.9 cores for each 10 of 10, 15 and 20 requests/s
		if got := w.At(confidence); got != want {
			t.Errorf("at %v: %d units, want %d", confidence, got, want)
		}
	}
	if w.Under(5) != 5 || w.Under(30) != 18 || w.Beyond(40) != 36 {
		t.Errorf("under 5, 30 and 40 requests/s: %d, %d, %d units", w.Under(5), w.Under(30), w.Beyond(40))
	}
}

func TestANeedKeepsToItsBoundsAndToWhatIsTakenBackOrStarves(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *need.Workload)
		want   int
	}{
		"at least its minimum":                      {func(w *need.Workload) { w.Min = 12 }, 12},
		"at most its maximum":                       {func(w *need.Workload) { w.Max = 5 }, 5},
		"what it had, where a fall is taken back":   {func(w *need.Workload) { w.Least = 1.55 }, 16},
		"what it has, where it starves":             {func(w *need.Workload) { w.Has, w.Starves = 2, true }, 20},
		"98% of the best, where none meets the SLO": {func(w *need.Workload) { w.SLO = 2 }, 10},
	} {
		w := worth(1, 1)
		if c.change(&w); w.At(0) != c.want {
			t.Errorf("%s: %d units, want %d", name, w.At(0), c.want)
		}
	}
}

// 0.45 of 0.9 cores: it lacks as much again, and a load of 10 counted over 20 s has a standard
// error of 1/√200: 14.1 of them.
func TestALackIsCountedInStandardErrorsOfTheLoad(t *testing.T) {
	w := worth(1, 0.45)
	if got := w.Deficit(); got < 14.1 || got > 14.2 {
		t.Errorf("lacks %v", got)
	}
	w.Known = false
	if w.Deficit() != 0 {
		t.Error("what is not known lacks nothing")
	}
	w = worth(1, 0.8)
	if w.Enough = 0.85; w.Deficit() != 0 {
		t.Error("0.8 is enough of 0.85 · 0.9")
	}
}

// Needs of 9 and 18 at the mean load, 18 and 36 at the upper bound.
func TestAPoolIsDividedByNeedsAtTheConfidenceThatFits(t *testing.T) {
	all := []need.Workload{worth(1, 1.5), worth(2, 3)}
	if _, ok := need.Divide(all, 26, within(26)); ok {
		t.Error("26 units are enough for needs of 27")
	}
	for _, c := range []struct {
		units     int
		need, aim []int
		stays     bool
	}{
		{27, []int{9, 18}, []int{9, 18}, false},  // nothing is left; 45 that all have do not fit
		{54, []int{18, 36}, []int{18, 36}, true}, // the upper bounds of the loads
		{81, []int{18, 36}, []int{27, 54}, true}, // half as much again is head-room
	} {
		a, ok := need.Divide(all, c.units, within(c.units))
		if !ok || !slices.Equal(a.Need, c.need) || !slices.Equal(a.Aim, c.aim) || a.Stays != c.stays {
			t.Errorf("%d units: %+v, %v", c.units, a, ok)
		}
	}
}

// At κ = 0.35 the first needs 0.9·1.35 = 1.22 cores, 13 units.
func TestWhoHasLessThanItNeedsIsShortAndNobodyStays(t *testing.T) {
	all := []need.Workload{worth(1, 1.2), worth(2, 3)}
	a, ok := need.Divide(all, 81, within(81))
	if !ok || !slices.Equal(a.Short, []bool{true, false}) || a.Stays || a.Confidence != 0.35 {
		t.Errorf("%+v", a)
	}
	all[0].Enough = 0.85
	if a, _ = need.Divide(all, 81, within(81)); a.Short[0] || !a.Stays {
		t.Errorf("within the noise of its load: %+v", a)
	}
}

// 33 - 27 units are left for backlogs that ask for 4 and 8: half of each.
func TestBacklogsShareWhatNeedsLeave(t *testing.T) {
	all := []need.Workload{worth(1, 1), worth(2, 2)}
	all[0].Waiting, all[1].Waiting = 4, 8
	a, ok := need.Divide(all, 33, within(33))
	if !ok || !slices.Equal(a.Need, []int{11, 22}) {
		t.Errorf("%+v", a)
	}
}

func TestHeadroomKeepsToWhatCanEasilyBeHad(t *testing.T) {
	all := []need.Workload{worth(1, 1), worth(2, 2)}
	all[0].Easy, all[1].Easy = 10, 20
	if a, _ := need.Divide(all, 81, within(81)); !slices.Equal(a.Aim, []int{18, 36}) {
		t.Errorf("%+v", a)
	}
}

// 0.5 cores go to the backlog: what 1.5 gave takes 2.
func TestABacklogShiftsTheCurveByAtMostHalfOfTheNeed(t *testing.T) {
	c := worth(1, 1).Curve
	if got := need.Behind(c, 0.5).Knots[1].Allocation; got != 2.5 {
		t.Errorf("%v cores, want 2.5", got)
	}
	if got := need.Behind(c, 50).Knots[1].Allocation; got != 3 {
		t.Errorf("%v cores, want half as much again", got)
	}
	if c.Knots[1].Allocation != 2 {
		t.Error("the curve itself was changed")
	}
}
