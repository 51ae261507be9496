package instances_test

import (
	"math"
	"strings"
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

func TestTheLeastLoadedAreNamedOnlyWhereTheLoadOfAllIsKnown(t *testing.T) {
	all := of([]float64{1, 1, 1}, []float64{0, 0, 0})
	share := func(host string, v float64) trimtab.LoadShare { return trimtab.LoadShare{Host: host, Share: v} }
	for i := range all {
		all[i].Instance = "pod-" + all[i].Host
	}
	for name, c := range map[string]struct {
		shares []trimtab.LoadShare
		n      int
		want   string
	}{
		"nothing is known":               {nil, 1, ""},
		"the load of one is not known":   {[]trimtab.LoadShare{share("a", 0.6), share("b", 0.3)}, 1, ""},
		"all are known":                  {[]trimtab.LoadShare{share("a", 0.5), share("b", 0.2), share("c", 0.3)}, 2, "pod-b pod-c"},
		"one serves nothing":             {[]trimtab.LoadShare{share("a", 0.4), share("b", 0.6)}, 2, "pod-c pod-a"},
		"none is to go":                  {[]trimtab.LoadShare{share("a", 0.5), share("b", 0.2), share("c", 0.3)}, 0, ""},
		"all are to go, in whatever way": {[]trimtab.LoadShare{share("a", 0.5), share("b", 0.2), share("c", 0.3)}, 3, ""},
	} {
		e := &trimtab.Estimate{}
		for _, s := range c.shares {
			s.Instance = "pod-" + s.Host
			e.Shares = append(e.Shares, s)
		}
		if got := strings.Join(all.LeastLoaded(e, c.n), " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := all.LeastLoaded(nil, 1); got != nil {
		t.Errorf("without an estimate: %q", got)
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
