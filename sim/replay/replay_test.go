package replay

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
	"github.com/trimtab/trimtab/quantity"
)

// need is the cores per unit of load at which a workload meets everything.
func need() map[string]float64 { return map[string]float64{"greedy": 0.06, "modest": 0.01} }

const slo = 0.9

func truth(name string, a, l float64) float64 { return math.Min(1, a/(need()[name]*l)) }

// known is a learner that knows the truth.
type known struct {
	learn.Learner

	name string
}

func (k known) Predict(a, l float64) trimtab.Band {
	v := truth(k.name, a, l)
	return trimtab.Band{Lower: v, Mean: v, Upper: v}
}

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func configs(policy policy.Policy) (analyzer.Config, planner.Config) {
	a := analyzer.Config{Report: 10 * time.Second, Round: 30 * time.Second, Level: 0.9}
	p := planner.Config{Pool: "p", Resource: "cpu", Capacity: 8, Unit: 0.1, Step: 10, Round: 30 * time.Second, Policy: policy, Guard: guard.Config{Disabled: true}}
	for name := range need() {
		a.Workloads = append(a.Workloads, analyzer.Workload{Name: name, Target: slo, Resource: "cpu", Min: 0.1, Max: 8,
			LoadFrom: analyzer.FromPrometheus, PerformanceFrom: analyzer.FromPrometheus,
			Learner: func() learn.Learner { l, _ := gp.New(0.9); return l }})
		p.Workloads = append(p.Workloads, planner.WorkloadConfig{Name: name, Mode: trimtab.Recommend, Min: 0.1, Max: 8, SLO: slo})
	}
	return a, p
}

// recorded is a history of n reports of two workloads at a constant load of
// 100/s, with allocations that an operator moved about.
func recorded(t *testing.T, n int) *History {
	t.Helper()
	a, _ := configs(fair.ResourceFair{})
	h, err := New(a)
	if err != nil {
		t.Fatal(err)
	}
	now := noon()
	for i := range n {
		share := 4 + 3*math.Sin(float64(i/6)) // the same for a minute
		held := map[string]float64{"greedy": share, "modest": 8 - share}
		holding := &trimtab.Holding{Host: "h", Time: now}
		for name, v := range held {
			holding.Targets = append(holding.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: holding.Pool, Host: holding.Host, Workload: name, Resource: "cpu"}, Now: trimtab.Units(v), Since: now, Max: 8})
		}
		h.Step(now, holding)
		now = now.Add(10 * time.Second)
		for name, v := range held {
			s := trimtab.Sample{Workload: name, Source: "test", Time: now, Window: 10}
			load, performance := s, s
			load.Quantity, load.Value = quantity.Load, 100
			performance.Quantity, performance.Value, performance.Requests = quantity.Performance, truth(name, v, 100), 1000
			h.Step(now, &load)
			h.Step(now, &performance)
		}
		h.Step(now.Add(time.Second), nil)
	}
	return h
}

func line(t *testing.T, r *Result, name string) Line {
	t.Helper()
	for _, l := range r.Lines {
		if l.Workload == name {
			return l
		}
	}
	t.Fatalf("no line of %s", name)
	return Line{}
}

func TestRecordedAllocationsByTheCurveAreCloseToWhatWasMeasured(t *testing.T) {
	_, p := configs(fair.ResourceFair{})
	r, err := recorded(t, 720).Run(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range r.Lines {
		m, c := l.Measured, l.Recorded
		if m.Minutes < 110 || m.Hours != c.Hours || math.Abs(m.SLOMinutes-c.SLOMinutes) > 0.1*m.Minutes {
			t.Errorf("%s: measured %+v, by the curve %+v", l.Workload, m, c)
		}
		if c.Low > c.SLOMinutes || c.SLOMinutes > c.High {
			t.Errorf("%s: range %v to %v around %v", l.Workload, c.Low, c.High, c.SLOMinutes)
		}
	}
}

func TestAPolicyThatKnowsTheNeedMeetsWhatEqualSharesMiss(t *testing.T) {
	h := recorded(t, 720)
	for name := range need() {
		learner := h.learners[name]
		h.learners[name] = func() learn.Learner { return known{learner(), name} }
	}
	_, p := configs(fair.ResourceFair{})
	equal, err := h.Run(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, p = configs(welfare.TieBreak{Objective: welfare.Egalitarian{}})
	learned, err := h.Run(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	e, l := line(t, equal, "greedy").Replayed, line(t, learned, "greedy").Replayed
	// Equal shares are 4 cores; greedy needs 5.4 for its SLO, and modest 0.9.
	t.Logf("SLO minutes of greedy: equal %.0f, egalitarian %.0f of %.0f", e.SLOMinutes, l.SLOMinutes, l.Minutes)
	if e.SLOMinutes > 0.2*e.Minutes || l.SLOMinutes < 0.8*l.Minutes {
		t.Errorf("SLO minutes of greedy: equal %v, egalitarian %v of %v", e.SLOMinutes, l.SLOMinutes, l.Minutes)
	}
	if m := line(t, learned, "modest").Replayed; m.SLOMinutes < 0.8*m.Minutes {
		t.Errorf("modest paid for it: %+v", m)
	}
	if sum := line(t, learned, "greedy").Replayed.Hours + line(t, learned, "modest").Replayed.Hours; sum > 8*2.01 {
		t.Errorf("%v core-hours in two hours of a pool of 8", sum)
	}
}

func TestTheSameRecordingGivesTheSameResult(t *testing.T) {
	h := recorded(t, 120)
	_, p := configs(welfare.Social{})
	a, err := h.Run(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := h.Run(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range a.Lines {
		if a.Lines[i] != b.Lines[i] || a.Moved != b.Moved {
			t.Errorf("%+v, then %+v", a.Lines[i], b.Lines[i])
		}
	}
}

func TestALongSilenceIsPassedOver(t *testing.T) {
	h := recorded(t, 60)
	for _, w := range h.workloads {
		for i := range w.reports[30:] {
			w.reports[30+i].at = w.reports[30+i].at.Add(300 * 24 * time.Hour)
		}
	}
	_, p := configs(fair.ResourceFair{})
	asked := 0
	r, err := h.Run(p, func(float64) bool { asked++; return asked > 1000 })
	if err != nil {
		t.Fatal(err)
	}
	if l := line(t, r, "greedy"); asked > 200 || l.Replayed.Minutes < 9 {
		t.Errorf("%d intervals for %v minutes of reports", asked, l.Replayed.Minutes)
	}
}

func TestAReplayThatIsToldToStopAnswersForTheTimeUpToThere(t *testing.T) {
	_, p := configs(fair.ResourceFair{})
	asked := 0
	r, err := recorded(t, 60).Run(p, func(float64) bool { asked++; return asked > 30 })
	if err != nil {
		t.Fatal(err)
	}
	if m := line(t, r, "greedy").Replayed.Minutes; m < 4 || m > 6 {
		t.Errorf("%v minutes", m)
	}
}

func TestAHistoryWithoutReportsIsRefused(t *testing.T) {
	a, p := configs(fair.ResourceFair{})
	h, err := New(a)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Run(p, nil); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}
