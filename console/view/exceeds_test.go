package view

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

func TestRecommendationsThatDoNotFitThePoolTogetherAreSaidToBeSo(t *testing.T) {
	now := time.Now()
	id := func(name string) trimtab.KnobID {
		return trimtab.KnobID{Pool: "p", Host: "h", Workload: name, Resource: trimtab.CPU}
	}
	for _, c := range []struct {
		set  float64
		mode trimtab.Mode
		said bool
	}{{1.5, trimtab.Recommend, true}, {1, trimtab.Recommend, false}, {1.5, trimtab.Act, false}} {
		v := New(Config{Pool: "p", Resource: trimtab.CPU, Capacity: 2})
		v.Observe(&trimtab.Holding{Pool: "p", Host: "h", Time: now, Targets: []trimtab.KnobState{
			{KnobID: id("a"), Knob: "k", Now: trimtab.Units(0.5), Since: now, Max: 2}, {KnobID: id("b"), Knob: "k", Now: trimtab.Units(1), Since: now, Max: 2}}})
		p := &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Last: true, Time: now, Capacity: 2, Resource: trimtab.CPU,
			Actions: []trimtab.Action{{KnobID: id("a"), Expect: trimtab.Units(0.5), Set: trimtab.Units(c.set), Mode: c.mode}}}
		v.Observe(p)
		planned := v.Planned()
		if planned == nil {
			t.Fatal("no plan")
		}
		report := v.Report(now.Add(-time.Hour), now)
		for _, got := range []string{planned.Exceeds, v.Status(now).Exceeds, report.Exceeds, strings.Join(report.Document().Lead[3:], " ")} {
			if strings.Contains(got, "2.5 cores together, and the pool has 2 cores") != c.said || !c.said && got != "" {
				t.Errorf("%s, %v: %q", c.mode, c.set, got)
			}
		}
	}
}
