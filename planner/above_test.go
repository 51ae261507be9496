package planner_test

import (
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/fair"
)

func TestNoMoreIsPlannedThanTheGroupAboveLetsThrough(t *testing.T) {
	a, b, c := at("h", "a", ""), at("h", "b", ""), at("h", "c", "")
	for name, set := range map[string]trimtab.Amount{"less": trimtab.Units(0.5), "as much": trimtab.Units(1), "more": trimtab.Units(2), "no limit": trimtab.Unlimited()} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(map[trimtab.KnobID]trimtab.Amount{a: set, b: trimtab.Units(2), c: trimtab.Units(2)}, nil)
			f.above = map[trimtab.KnobID]*trimtab.KnobStatus{a: {Most: 1, By: "the limit of the group above, shop", Caps: true}}
			p := leads(t, pool(fair.NJCPolicy{}, trimtab.Act))
			last := f.settle(p, t0, 20, map[string]float64{"a": 3, "b": 3, "c": 3})
			want := trimtab.Units(1)
			if want.Less(set) {
				want = set // as much is in force: nothing is gained by a write
			}
			if f.now[a] != want {
				t.Errorf("a is set to %v, want %v", f.now[a], want)
			}
			// What a cannot have is there for the others: 2.8 is what they need..
			if f.now[b].Value < 2.8 || f.now[c].Value < 2.8 {
				t.Errorf("b has %v, c %v of 8 cores", f.now[b], f.now[c])
			}
			if why := last.Unmoved["a"].Text; len(last.Actions) > 0 || !strings.Contains(why, "it has 1 cores") || !strings.Contains(why, "the limit of the group above, shop, allows no more") {
				t.Errorf("%d actions, a stays since %q", len(last.Actions), why)
			}
		})
	}
}

func TestALimitAboveThatIsLessThanWhatIsGuaranteedIsNamed(t *testing.T) {
	a, b, c := at("h", "a", ""), at("h", "b", ""), at("h", "c", "")
	slice := &trimtab.KnobStatus{Most: 2, By: "the limit of the group above, shop", Caps: true}
	for guarantee, want := range map[float64]bool{0: false, 1: false, 1.5: true} {
		f := newFleet(map[trimtab.KnobID]trimtab.Amount{a: trimtab.Units(1), b: trimtab.Units(1), c: trimtab.Units(2)}, nil)
		f.above = map[trimtab.KnobID]*trimtab.KnobStatus{a: slice, b: slice}
		cfg := pool(fair.NJCPolicy{}, trimtab.Act)
		for i := range cfg.Workloads {
			if cfg.Workloads[i].Name != "c" {
				cfg.Workloads[i].Guarantee = guarantee
			}
		}
		p := leads(t, cfg)
		last := f.settle(p, t0, 20, map[string]float64{"a": 1, "b": 1, "c": 1})
		why := last.Unmoved["a"].Text
		if got := strings.Contains(why, "what those below it are guaranteed adds up to 3 cores, and the limit of the group above, shop, gives 2 cores"); got != want || len(last.Actions) > 0 {
			t.Errorf("guarantees of %v: %d actions, a stays since %q", guarantee, len(last.Actions), why)
		}
	}
}
