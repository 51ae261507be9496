package cluster

import (
	"math"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/bintree"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/welfare"
)

// two is a loop of two workloads on 40 units: "needy" meets its SLO with 30 of
// them, "sated" with 5.
func two(t *testing.T, mode trimtab.Mode) *Loop {
	t.Helper()
	c := Config{Start: time.Unix(1_000_000_000, 0).UTC(), Held: map[string]float64{"needy": 20, "sated": 20},
		Analyzer: analyzer.Config{Report: time.Second, Round: 10 * time.Second},
		Planner: planner.Config{Pool: "p", Resource: "cpu", Capacity: 40, Unit: 1, Step: 3, Round: 10 * time.Second,
			Policy: welfare.Egalitarian{}, Guard: guard.Config{Disabled: true}},
	}
	for name := range needs() {
		c.Analyzer.Workloads = append(c.Analyzer.Workloads, analyzer.Workload{Name: name, Target: 1, Resource: "cpu", Min: 1, Max: 40,
			LoadFrom: analyzer.FromPrometheus, PerformanceFrom: analyzer.FromPrometheus,
			Learner: func() learn.Learner { l, _ := bintree.New(0.9); return l }})
		c.Planner.Workloads = append(c.Planner.Workloads, planner.WorkloadConfig{Name: name, Mode: mode, Min: 1, Max: 40, SLO: 1})
	}
	l, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func needs() map[string]float64 { return map[string]float64{"needy": 30, "sated": 5} }

// play runs rounds of ten reports.
func play(l *Loop, rounds int, after func()) {
	now := time.Unix(1_000_000_000, 0).UTC()
	for range rounds {
		for range 10 {
			now = now.Add(time.Second)
			for name, need := range needs() {
				p := math.Min(1, l.Held(name)/need)
				l.Sample(now, &trimtab.Sample{Workload: name, Quantity: trimtab.Load, Source: "s", Time: now, Value: 10})
				l.Sample(now, &trimtab.Sample{Workload: name, Quantity: trimtab.Performance, Source: "s", Time: now, Value: p, Requests: 1000})
			}
			l.Tick(now)
		}
		l.Round(now)
		after()
	}
}

func TestTheLoopMovesWhatOneDoesNotNeedToWhoDoes(t *testing.T) {
	l := two(t, trimtab.Act)
	play(l, 15, func() {
		if sum := l.Held("needy") + l.Held("sated"); sum > 40 {
			t.Fatalf("%v of 40 units are held", sum)
		}
	})
	if l.Held("needy") < 28 {
		t.Errorf("needy has %v of the 30 units that it needs", l.Held("needy"))
	}
	if l.Plan() == nil || l.Estimate("needy") == nil || l.Estimate("needy").Curve == nil {
		t.Error("the steps said nothing")
	}
}

func TestARecommendationChangesNothing(t *testing.T) {
	l := two(t, trimtab.Recommend)
	play(l, 5, func() {})
	if l.Held("needy") != 20 || l.Held("sated") != 20 {
		t.Errorf("%v and %v", l.Held("needy"), l.Held("sated"))
	}
}

func TestAnOwnersChangeIsSeenAtOnce(t *testing.T) {
	l := two(t, trimtab.Act)
	play(l, 3, func() {})
	l.Set(time.Unix(1_000_000_031, 0), "sated", 1)
	if l.Held("sated") != 1 {
		t.Fatal("not set")
	}
	l.Round(time.Unix(1_000_000_060, 0))
	if sum := l.Held("needy") + l.Held("sated"); sum > 40 {
		t.Errorf("%v of 40 units are held", sum)
	}
}
