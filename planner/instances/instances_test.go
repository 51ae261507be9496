package instances_test

import (
	"math"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/instances"
	"github.com/trimtab/trimtab/planner/ledger"
)

// of are instances that have amounts and serve parts of the load.
func of(has, shares []float64) instances.All {
	all := make(instances.All, len(has))
	for i := range has {
		id := trimtab.KnobID{Pool: "p", Host: string(rune('a' + i)), Workload: "w", Resource: "cpu"}
		all[i] = instances.Instance{Knob: &ledger.Knob{KnobID: id, Held: trimtab.KnobState{KnobID: id, Now: trimtab.Units(has[i])}},
			Found: trimtab.Units(has[i]), Has: has[i], High: 8, Set: has[i], Share: shares[i]}
	}
	return all
}

func TestTheSlowestInstanceSetsWhatTheWorkloadDelivers(t *testing.T) {
	all := of([]float64{1, 3}, []float64{0.5, 0.5})
	if got := all.Set(); got != 2 {
		t.Errorf("of 1 and 3 cores for halves of the load: %v, want 2", got)
	}
	if got := all.Own(2); got != 2 {
		t.Errorf("beyond its part of 1 the second has %v, want 2", got)
	}
	if got := all.Tightest(); got != "a" {
		t.Errorf("the tightest is on %s, want a", got)
	}
}

func TestSharesThatAreToldAreTakenAndOthersAreEven(t *testing.T) {
	all := of([]float64{1, 1}, []float64{0, 0})
	if all.ShareOut(nil); all[0].Share != 0.5 {
		t.Errorf("nothing is told: %v", all[0].Share)
	}
	all.ShareOut(&trimtab.Estimate{Shares: []trimtab.LoadShare{{Host: "a", Share: 0.75}, {Host: "b", Share: 0.25}}})
	if math.Abs(all[0].Share-0.75) > 1e-9 {
		t.Errorf("three quarters are told: %v", all[0].Share)
	}
}

func TestOneThatHasMoreThanTwiceItsPartIsToComeDown(t *testing.T) {
	for _, c := range []struct {
		second float64
		over   bool
		want   bool
	}{{1.5, false, false}, {1.5, true, true}, {2.5, false, true}} {
		all := of([]float64{1, c.second}, []float64{0.5, 0.5})
		if got := all.Uneven(2, 0.1, 0.1, c.over); got != c.want {
			t.Errorf("1 and %v cores, pool over %v: %v", c.second, c.over, got)
		}
	}
}

func TestTheMedianIsOfThoseThatWereThereBefore(t *testing.T) {
	all := of([]float64{1, 2, 4, 8}, []float64{0.25, 0.25, 0.25, 0.25})
	all[3].Fresh = true
	if got, ok := all.Median(); !ok || got != 2 {
		t.Errorf("%v, %v, want 2", got, ok)
	}
	if !all.Appeared() {
		t.Error("one has just appeared")
	}
}
