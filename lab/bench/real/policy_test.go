package main

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestProportionsAddUpToOneAndLeaveTheFloor(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var need [3]float64
		for i := range need {
			need[i] = rapid.Float64Range(0, 100).Draw(r, "need")
		}
		got := proportions(need)
		if sum := got[0] + got[1] + got[2]; math.Abs(sum-1) > 1e-9 {
			r.Fatalf("%v adds up to %v", got, sum)
		}
		for i := range got {
			if got[i] < floor-1e-9 {
				r.Fatalf("%v for %v", got, need)
			}
		}
	})
}

func TestProportionsAreThoseOfTheNeedsAboveTheFloor(t *testing.T) {
	got := proportions([3]float64{3, 1, 0})
	want := [3]float64{0.95 * 0.75, 0.95 * 0.25, floor}
	for i := range got {
		if math.Abs(got[i]-want[i]) > 1e-9 {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if got := proportions([3]float64{}); got != [3]float64{1. / 3, 1. / 3, 1. / 3} {
		t.Errorf("without any need: %v", got)
	}
}

func TestTheThresholdRuleGivesTwiceTheHighestUseAndScalesDownTogether(t *testing.T) {
	if got := threshold([3][]float64{{.1, .2, .1}, {.1}, nil}); got != [3]float64{.4, .2, floor} {
		t.Errorf("%v", got)
	}
	got := threshold([3][]float64{{.5}, {.25}, {.25}})
	if got != [3]float64{.5, .25, .25} {
		t.Errorf("scaled down: %v", got)
	}
}

func TestWorkIsWhatArrivedInAWindow(t *testing.T) {
	in := []arrival{{1 * time.Second, 1}, {2 * time.Second, 1.3}, {3 * time.Second, 1}}
	if got := work(in, time.Second, 2*time.Second); got != 1.3 {
		t.Errorf("%v, want 1.3", got)
	}
}

func TestPolicyNamesAreExpandedOnceEach(t *testing.T) {
	if got, err := policies([]string{"weights", "oracle:social"}, nil); err != nil || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
	got, err := policies([]string{"equal", "trimtab:njc", "trimtab:njc:spans", "trimtab:default:promql", "trimtab:njc:spans:fast", "equal"}, []string{"spans", "promql"})
	if err != nil || len(got) != 5 || got[4] != "trimtab:njc:spans:fast" || got[1] != "trimtab:njc:spans" || got[2] != "trimtab:njc:promql" {
		t.Errorf("%v, %v", got, err)
	}
	for _, name := range []string{"fair", "trimtab:fair", "trimtab:njc:smoke", "trimtab:njc:spans:slow", "trimtab:njc:spans:fast:fast", "oracle:", "oracle:luck", ""} {
		if got, err := policies([]string{name}, []string{"spans"}); err == nil {
			t.Errorf("%q gave %v", name, got)
		}
	}
}
