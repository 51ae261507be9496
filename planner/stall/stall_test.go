package stall_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/stall"
)

var t0 = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-12 {
		t.Errorf("%s: %v s, want %v", what, got, want)
	}
}

func TestABudgetBeginsAtTheLeastOfWhatIsLeftAndFollowsIt(t *testing.T) {
	var b stall.Budget
	b.Follow(t0, time.Hour, 0)
	near(t, "nothing is told", b.Seconds, 0.05)
	b.Record(t0, "a", 0.04)
	b.Record(t0, "b", 0.02)
	b.Follow(t0, time.Hour, 0)
	near(t, "the first that is told is no change in proportion to a guess", b.Seconds, 0.05*0.02/0.05)
	b.Record(t0, "b", 0.0215)
	b.Follow(t0, time.Hour, 0)
	near(t, "7.5% more is the same", b.Seconds, 0.02)
	b.Record(t0, "b", 0.03)
	b.Follow(t0, time.Hour, 0)
	near(t, "half as much again", b.Seconds, 0.03)
	b.Record(t0, "b", 1)
	b.Record(t0, "a", 1)
	b.Follow(t0, time.Hour, 0)
	near(t, "the most", b.Seconds, stall.Most)
	b.Record(t0, "b", 0)
	b.Follow(t0, time.Hour, 0)
	near(t, "the least", b.Seconds, 0.01)
}

func TestWhatWasToldLongAgoIsForgotten(t *testing.T) {
	var b stall.Budget
	b.Record(t0, "a", 0.02)
	b.Follow(t0.Add(2*time.Hour), time.Hour, 0)
	near(t, "as if nothing was told", b.Seconds, 0.05)
}

func TestTheBudgetOfAnEarlierPlannerGoesOn(t *testing.T) {
	var b stall.Budget
	b.Record(t0, "a", 0.02)
	b.Follow(t0, time.Hour, 0.03)
	near(t, "it begins where that was", b.Seconds, 0.03)
	b.Record(t0, "a", 0.04)
	b.Follow(t0, time.Hour, 0)
	near(t, "and follows from there: twice as much, at most 0.07", b.Seconds, 0.06)
}

// An SLO of 0.9 leaves 10%: 20% late are too many, 4% less than half, 8% between.
func TestABudgetIsCorrectedByWhatWasLateOnceForEachReport(t *testing.T) {
	for _, c := range []struct{ performance, want float64 }{{0.8, 0.05 * 0.7}, {0.96, 0.05 * 1.05}, {0.92, 0.05}} {
		b := stall.Budget{Seconds: 0.05}
		e := &trimtab.Estimate{Time: t0, Performance: &c.performance}
		b.Correct(e, 0.9)
		b.Correct(e, 0.9)
		near(t, fmt.Sprint(c.performance), b.Seconds, c.want)
	}
	b := stall.Budget{Seconds: 0.05}
	b.Correct(nil, 0.9)
	b.Correct(&trimtab.Estimate{Time: t0}, 0.9)
	near(t, "nothing measured", b.Seconds, 0.05)
}
