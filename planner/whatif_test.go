package planner_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
	planned "github.com/trimtab/trimtab/planner/whatif"
	"github.com/trimtab/trimtab/whatif"
)

// askedPool is a pool of services with curves, what they have and what is known.
func askedPool(objective policy.Policy, capacity float64, needs map[string]float64) planned.Question {
	c := planner.Config{Pool: "p", Resource: "cpu", Capacity: capacity, Unit: 0.1, Round: time.Minute, Policy: objective}
	h := &trimtab.Holding{Pool: "p", Host: "h", Time: t0, LeaseLeft: 60}
	q := planned.Question{Now: t0.Add(time.Second)}
	for _, name := range []string{"a", "b", "c"} {
		need, ok := needs[name]
		if !ok {
			continue
		}
		c.Workloads = append(c.Workloads, planner.WorkloadConfig{Name: name, Mode: trimtab.Act, SLO: 0.9, Min: 0.1, Max: capacity})
		h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: name, Resource: "cpu"}, Knob: "test",
			Now: trimtab.Units(math.Floor(10*capacity/float64(len(needs))) / 10), Baseline: trimtab.Units(1), Since: t0, Min: 0.1, Max: capacity})
		q.Estimates = append(q.Estimates, estimate(name, t0, ramp(need)))
	}
	q.Before, q.After, q.Holdings = c, c, []*trimtab.Holding{h}
	return q
}

func objectives() []policy.Policy {
	return []policy.Policy{fair.NJCPolicy{}, fair.ResourceFair{}, welfare.Social{}, welfare.Egalitarian{}, welfare.Nash{}}
}

func TestAWhatIfWantsWhatAPlannerThatStartsNowWants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := askedPool(rapid.SampledFrom(objectives()).Draw(t, "objective"), rapid.Float64Range(3, 9).Draw(t, "capacity"), map[string]float64{
			"a": rapid.Float64Range(0.5, 5).Draw(t, "a"), "b": rapid.Float64Range(0.5, 5).Draw(t, "b"), "c": rapid.Float64Range(0.5, 5).Draw(t, "c")})
		got, err := planned.Answer(q)
		if err != nil {
			t.Fatal(err)
		}
		cfg := q.Before
		cfg.Step = policy.MaxUnits
		p := leads(t, cfg)
		for _, h := range q.Holdings {
			p.Step(q.Now, h)
		}
		for _, e := range q.Estimates {
			p.Step(q.Now, e)
		}
		want := map[string]float64{}
		for _, plan := range plans(p.Step(q.Now, nil)) {
			for _, a := range plan.Actions {
				want[a.Workload] = *a.Why.Target
			}
		}
		for _, w := range got.Workloads {
			if target, moved := want[w.Workload]; moved && math.Abs(target-w.Before.Allocation) > 1e-9 {
				t.Errorf("%s: the planner wants %v, the what-if %v", w.Workload, target, w.Before.Allocation)
			}
			if w.Before.Allocation != w.After.Allocation || w.Effect != whatif.Stays {
				t.Errorf("%s: without a change %v becomes %v: %s", w.Workload, w.Before.Allocation, w.After.Allocation, w.Effect)
			}
		}
	})
}

func TestAWhatIfKeepsTheCapacityAndCountsItsEffects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := askedPool(rapid.SampledFrom(objectives()).Draw(t, "objective"), rapid.Float64Range(3, 9).Draw(t, "capacity"), map[string]float64{
			"a": rapid.Float64Range(0.5, 5).Draw(t, "a"), "b": rapid.Float64Range(0.5, 5).Draw(t, "b"), "c": rapid.Float64Range(0.5, 5).Draw(t, "c")})
		q.After.Capacity = rapid.Float64Range(1, 20).Draw(t, "other")
		q.After.Workloads = append([]planner.WorkloadConfig{}, q.After.Workloads...)
		q.After.Workloads[1].Weight = rapid.Float64Range(0.1, 10).Draw(t, "weight")
		q.After.Workloads[2].SLO = rapid.Float64Range(0.5, 0.99).Draw(t, "slo")
		got, err := planned.Answer(q)
		if err != nil {
			t.Fatal(err)
		}
		before, after, count := 0.0, 0.0, map[whatif.Effect]int{}
		for _, w := range got.Workloads {
			before, after = before+w.Before.Allocation, after+w.After.Allocation
			count[w.Effect]++
			if b := w.After.Performance; !(b.Lower <= b.Mean && b.Mean <= b.Upper) {
				t.Errorf("%s: band %+v", w.Workload, b)
			}
		}
		if before > q.Before.Capacity+1e-6 || after > q.After.Capacity+1e-6 {
			t.Errorf("%v of %v and %v of %v are given", before, q.Before.Capacity, after, q.After.Capacity)
		}
		if got.Gain != count[whatif.Gains] || got.Pay != count[whatif.Pays] || got.Hold != count[whatif.Holds] {
			t.Errorf("counts %d, %d, %d of %v", got.Gain, got.Pay, got.Hold, count)
		}
	})
}

func TestWithLessCapacitySomebodyPaysAndABandSaysHowSure(t *testing.T) {
	q := askedPool(welfare.Social{}, 6, map[string]float64{"a": 3, "b": 3})
	q.After.Capacity = 3
	got, err := planned.Answer(q)
	if err != nil {
		t.Fatal(err)
	}
	if got.Pay == 0 || got.Gain != 0 || got.CapacityBefore != 6 || got.CapacityAfter != 3 {
		t.Errorf("%+v", got)
	}
	worst := whatif.MeetsSurely
	for _, w := range got.Workloads {
		if w.Before.Meets == whatif.MeetsNot || w.Before.Meets == whatif.MeetsUnknown {
			t.Errorf("%s: before %s with %+v", w.Workload, w.Before.Meets, w.Before.Performance)
		}
		if w.After.Meets == whatif.MeetsNot {
			worst = w.After.Meets
		}
	}
	if worst != whatif.MeetsNot {
		t.Error("half of what two need is enough for both")
	}
}

func TestMoreWeightIsPaidForByTheOthers(t *testing.T) {
	q := askedPool(fair.ResourceFair{}, 4, map[string]float64{"a": 4, "b": 4})
	q.After.Workloads = append([]planner.WorkloadConfig{}, q.After.Workloads...)
	q.After.Workloads[0].Weight = 3
	got, err := planned.Answer(q)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := got.Workloads[0], got.Workloads[1]; a.Effect != whatif.Gains || b.Effect != whatif.Pays || math.Abs(a.After.Allocation-3) > 0.11 {
		t.Errorf("a %s to %v, b %s to %v", a.Effect, a.After.Allocation, b.Effect, b.After.Allocation)
	}
}

func TestAWhatIfChangesNothingThatItIsGiven(t *testing.T) {
	build := func() planned.Question {
		q := askedPool(welfare.Social{}, 4, map[string]float64{"a": 4, "b": 2})
		q.Before.Policy, q.After.Policy = nil, nil
		q.Latency = map[string]planned.Threshold{"a": {Before: 200 * time.Millisecond, After: 100 * time.Millisecond}}
		q.Estimates[0].Latency = map[string]trimtab.Seconds{"p50": .05, "p99": .3}
		q.Holdings[0].Capacity = map[string]float64{"cpu": 4}
		q.After.Capacity = 8
		return q
	}
	q := build()
	q.Before.Policy, q.After.Policy = welfare.Social{}, welfare.Social{}
	if _, err := planned.Answer(q); err != nil {
		t.Fatal(err)
	}
	q.Before.Policy, q.After.Policy = nil, nil
	if d := cmp.Diff(build(), q); d != "" {
		t.Error(d)
	}
}

func TestAWorkloadOfWhichNothingIsKnownHoldsInAWhatIf(t *testing.T) {
	q := askedPool(welfare.Social{}, 6, map[string]float64{"a": 3, "b": 3})
	q.Estimates = q.Estimates[:1]
	q.Before.Workloads = append(q.Before.Workloads, planner.WorkloadConfig{Name: "z", Mode: trimtab.Recommend, SLO: 1, Max: 6})
	q.After = q.Before
	q.After.Capacity = 5
	got, err := planned.Answer(q)
	if err != nil {
		t.Fatal(err)
	}
	b := got.Workloads[1]
	if got.Hold != 1 || b.Effect != whatif.Holds || b.Held == "" || b.After.Allocation != b.Now || b.After.Performance != nil || b.After.Meets != whatif.MeetsUnknown {
		t.Errorf("%d hold; b: %+v", got.Hold, b)
	}
	if got.Absent["z"] == "" {
		t.Errorf("a workload without a limit is not told: %v", got.Absent)
	}
}

func TestACapacityThatDoesNotHoldTheMinimumsIsSaid(t *testing.T) {
	q := askedPool(fair.NJCPolicy{}, 6, map[string]float64{"a": 9, "b": 9})
	q.After.Capacity = 0.1
	if got, err := planned.Answer(q); !errors.Is(err, trimtab.ErrInfeasible) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAStricterLatencyNeedsMoreAndItsBandIsWider(t *testing.T) {
	q := askedPool(fair.NJCPolicy{}, 12, map[string]float64{"a": 3, "b": 3})
	q.Before.Workloads[0].SLO, q.Estimates[0].Performance = 0.9, new(float64)
	*q.Estimates[0].Performance = 0.99
	q.Latency = map[string]planned.Threshold{"a": {Before: 200 * time.Millisecond, After: 100 * time.Millisecond}}
	if got, err := planned.Answer(q); !errors.Is(err, trimtab.ErrUnsupported) {
		t.Errorf("without quantiles: %+v, %v", got, err)
	}
	q.Estimates[0].Latency = map[string]trimtab.Seconds{"p50": .05, "p95": .12, "p99": .3}
	got, err := planned.Answer(q)
	if err != nil {
		t.Fatal(err)
	}
	a := got.Workloads[0]
	if len(got.Assumes) != 1 || a.After.Performance.Lower >= a.Before.Performance.Lower || a.After.Performance.Upper < a.After.Performance.Mean {
		t.Errorf("assumes %q, before %+v, after %+v", got.Assumes, a.Before.Performance, a.After.Performance)
	}
	q.Latency = map[string]planned.Threshold{"a": {Before: 200 * time.Millisecond, After: 400 * time.Millisecond}}
	easier, err := planned.Answer(q)
	if err != nil {
		t.Fatal(err)
	}
	if e := easier.Workloads[0]; e.After.Performance.Mean < e.Before.Performance.Mean {
		t.Errorf("an easier latency: %+v, before %+v", e.After.Performance, e.Before.Performance)
	}
}

// TestTheOddsOfALatencyAreThoseOfLogLogisticLatencies: of latencies whose share under
// t is 1/(1 + (t/α)^-k), the share under another latency is exact.
func TestTheOddsOfALatencyAreThoseOfLogLogisticLatencies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		alpha, k := rapid.Float64Range(0.01, 0.2).Draw(t, "alpha"), rapid.Float64Range(1.5, 8).Draw(t, "k")
		share := func(at float64) float64 { return 1 / (1 + math.Pow(at/alpha, -k)) }
		at := func(q float64) trimtab.Seconds { return trimtab.Seconds(alpha * math.Pow(q/(1-q), 1/k)) }
		q := askedPool(fair.NJCPolicy{}, 12, map[string]float64{"a": 3})
		flat := share(0.2)
		q.Estimates[0].Curve = &trimtab.Curve{Load: 10, Level: 0.9, Knots: []trimtab.Knot{{Allocation: 1, Band: trimtab.Band{Lower: flat, Mean: flat, Upper: flat}}}}
		q.Estimates[0].Requests = 1e12
		q.Estimates[0].Latency = map[string]trimtab.Seconds{"p50": at(.5), "p95": at(.95), "p99": at(.99)}
		to := rapid.Float64Range(0.02, 1).Draw(t, "to")
		q.Latency = map[string]planned.Threshold{"a": {Before: 200 * time.Millisecond, After: time.Duration(to * float64(time.Second))}}
		got, err := planned.Answer(q)
		if err != nil {
			t.Fatal(err)
		}
		if b := got.Workloads[0].After.Performance; math.Abs(b.Mean-share(to)) > 1e-6 || b.Upper-b.Lower > 1e-6 {
			t.Errorf("share under %v s: %+v, want %v", to, b, share(to))
		}
	})
}

// BenchmarkWhatIf answers one question about a pool that is too small: ms an answer.
func BenchmarkWhatIf(b *testing.B) {
	for _, objective := range []policy.Policy{fair.NJCPolicy{}, welfare.Egalitarian{}, welfare.Social{MoveCost: 0.05}, welfare.Nash{}, fair.ResourceFair{}} {
		for _, n := range []int{100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", objective.Name(), n), func(b *testing.B) {
				prob := large("learnt", n, 100*n, 150)
				c := planner.Config{Pool: "p", Resource: "cpu", Capacity: float64(100 * n), Unit: 1, Round: time.Minute, Policy: objective}
				h := &trimtab.Holding{Pool: "p", Host: "h", Time: t0, LeaseLeft: 60}
				q := planned.Question{Now: t0.Add(time.Second)}
				for _, w := range prob.Workloads {
					c.Workloads = append(c.Workloads, planner.WorkloadConfig{Name: w.Name, Mode: trimtab.Act, SLO: 0.9, Min: 1})
					h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: w.Name, Resource: "cpu"}, Knob: "test",
						Now: trimtab.Units(100), Baseline: trimtab.Units(1), Since: t0, Min: 1, Max: float64(100 * n)})
					q.Estimates = append(q.Estimates, estimate(w.Name, t0, w.Curve))
				}
				q.Before, q.After, q.Holdings = c, c, []*trimtab.Holding{h}
				q.After.Capacity *= 0.4
				for b.Loop() {
					if _, err := planned.Answer(q); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/answer")
			})
		}
	}
}
