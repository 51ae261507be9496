package cluster

import (
	"math"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/welfare"
	"github.com/trimtab/trimtab/quantity"
)

// two is a loop of two workloads on 40 units: "needy" meets its SLO with 30 of
// them, "sated" with 5.
func two(t *testing.T, mode trimtab.Mode) *Loop {
	t.Helper()
	l, err := New(settings(mode))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func settings(mode trimtab.Mode) Config {
	c := Config{Start: time.Unix(1_000_000_000, 0).UTC(), Held: map[string]float64{"needy": 20, "sated": 20},
		Analyzer: analyzer.Config{Report: time.Second, Round: 10 * time.Second},
		Planner: planner.Config{Pool: "p", Resource: "cpu", Capacity: 40, Unit: 1, Step: 3, Round: 10 * time.Second,
			Policy: welfare.Egalitarian{}, Guard: guard.Config{Disabled: true}},
	}
	for name := range needs() {
		c.Analyzer.Workloads = append(c.Analyzer.Workloads, analyzer.Workload{Name: name, Target: 1, Resource: "cpu", Min: 1, Max: 40,
			LoadFrom: analyzer.FromPrometheus, PerformanceFrom: analyzer.FromPrometheus,
			Learner: func() learn.Learner { l, _ := gp.New(0.9); return l }})
		c.Planner.Workloads = append(c.Planner.Workloads, planner.WorkloadConfig{Name: name, Mode: mode, Min: 1, Max: 40, SLO: 1})
	}
	return c
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
				l.Sample(now, &trimtab.Sample{Workload: name, Quantity: quantity.Load, Source: "s", Time: now, Value: 10})
				l.Sample(now, &trimtab.Sample{Workload: name, Quantity: quantity.Performance, Source: "s", Time: now, Value: p, Requests: 1000})
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

// One workload has three instances on two hosts, of which one serves half of the load,
// and the slowest sets what all deliver.
func TestATargetIsReachedOverInstancesThatServeUnlikeParts(t *testing.T) {
	c := settings(trimtab.Act)
	c.Instances = map[string][]trimtab.KnobID{"needy": {{Host: "a", Instance: "1"}, {Host: "a", Instance: "2"}, {Host: "b", Instance: "1"}}, "sated": {{Host: "b"}}}
	c.Capacity = map[string]float64{"a": 24, "b": 30}
	c.Held = map[string]float64{"needy": 18, "sated": 20}
	l, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	shares := []float64{0.25, 0.25, 0.5}
	effective := func() float64 {
		least := math.Inf(1)
		for i, k := range l.Knobs("needy") {
			least = math.Min(least, k.Now.Value/shares[i])
		}
		return least
	}
	now := c.Start
	for range 30 {
		for range 10 {
			now = now.Add(time.Second)
			for i, k := range l.Knobs("needy") {
				l.Sample(now, &trimtab.Sample{Workload: "needy", Host: k.Host, Instance: k.Instance, Quantity: quantity.Load, Source: "s", Time: now, Value: 10 * shares[i]})
			}
			l.Sample(now, &trimtab.Sample{Workload: "sated", Quantity: quantity.Load, Source: "s", Time: now, Value: 10})
			for name, p := range map[string]float64{"needy": effective() / 25, "sated": l.Held("sated") / 5} {
				l.Sample(now, &trimtab.Sample{Workload: name, Quantity: quantity.Performance, Source: "s", Time: now, Value: math.Min(1, p), Requests: 1000})
			}
			l.Tick(now)
		}
		l.Round(now)
		on := map[string]float64{}
		for _, name := range []string{"needy", "sated"} {
			for _, k := range l.Knobs(name) {
				on[k.Host] += k.Now.Value
			}
		}
		if on["a"] > 24+1e-9 || on["b"] > 30+1e-9 || on["a"]+on["b"] > 40+1e-9 {
			t.Fatalf("held: %v", on)
		}
	}
	if e := l.Estimate("needy"); len(e.Shares) != 3 || e.Allocation == nil || math.Abs(*e.Allocation-effective()) > 1e-6 {
		t.Errorf("allocation %v, shares %v; it has %v in effect", e.Allocation, e.Shares, effective())
	}
	if effective() < 23.9 { // with one instance it has 24
		t.Errorf("in effect it has %v of the 25 that it needs: %v", effective(), l.Knobs("needy"))
	}
}
