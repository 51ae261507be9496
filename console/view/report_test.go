package view

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// worked is a view of one service with a curve that meets its SLO from 2 cores on for
// 10 requests/s, a baseline, and so many reports 5 s apart that end now.
func worked(baseline trimtab.Amount, now time.Time, reports int, of func(n int) (allocation, performance float64)) *Model {
	v := New(Config{Pool: "p", Resource: "cpu", Round: 5 * time.Second, Workloads: []Workload{{Name: "shop", Mode: trimtab.Act, Share: true, Target: .9, SLO: "90% under 200ms"}}})
	c := &trimtab.Curve{Load: 10, Level: .9, Knots: []trimtab.Knot{
		{Allocation: 1, Band: trimtab.Band{Lower: .3, Mean: .5, Upper: .7}}, {Allocation: 1.9, Band: trimtab.Band{Lower: .7, Mean: .8, Upper: .95}}, {Allocation: 2, Band: trimtab.Band{Lower: .91, Mean: .95, Upper: .99}}}}
	for n := range reports {
		a, p := of(n)
		v.Observe(&trimtab.Estimate{Workload: "shop", Time: now.Add(-time.Duration(reports-1-n) * 5 * time.Second), Curve: c, Performance: &p, Allocation: &a, Load: &trimtab.LoadForecast{Now: 10, Mean: 10, Upper: 12}, Model: "test/1", Reports: n})
	}
	v.Observe(&trimtab.Holding{Pool: "p", Host: "h", Time: now, LeaseLeft: 30, Targets: []trimtab.KnobState{
		{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "shop", Resource: "cpu"}, Knob: "test", Now: trimtab.Units(2), Baseline: baseline, Since: now, Max: 8}}})
	return v
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-3 }

func TestAReportComparesWhatAWorkloadHadWithItsBaselineByTheSameCurve(t *testing.T) {
	now := time.Now()
	v := worked(trimtab.Units(1.9), now, 120, func(int) (float64, float64) { return 2, .95 })
	r := v.Report(now.Add(-10*time.Minute), now)
	w := r.Workloads[0]
	c := w.Compared
	if !near(w.Minutes, 10) || !near(w.SLOMinutes, 10) || !near(w.Hours, 2./6) {
		t.Errorf("measured %+v", w.Worth)
	}
	// At 1.9 only the upper bound of the curve meets the SLO.
	if c == nil || !near(c.Had.SLOMinutes.Lower, 10) || !near(c.Baseline.SLOMinutes.Mean, 0) || !near(c.Baseline.SLOMinutes.Upper, 10) || !near(c.Baseline.Hours, 1.9/6) {
		t.Fatalf("by curve %+v", c)
	}
	if !near(c.Gain.Lower, 0) || !near(c.Gain.Mean, 10) || !near(c.Gain.Upper, 10) {
		t.Errorf("gain %+v", c.Gain)
	}
	if !near(r.Total.Compared.Gain.Mean, 10) || len(r.Incidents) != 0 {
		t.Errorf("total %+v, incidents %+v", r.Total, r.Incidents)
	}
}

func TestWhatIsNotKnownIsLeftOutOfAReportAndSaid(t *testing.T) {
	now := time.Now()
	v := worked(trimtab.Unlimited(), now, 12, func(int) (float64, float64) { return 2, .95 })
	r := v.Report(now.Add(-time.Hour), now)
	w := r.Workloads[0]
	if w.Compared != nil || r.Total.Compared != nil || w.Minutes > 1.5 {
		t.Errorf("%+v", w.Worth)
	}
	missing := strings.Join(r.Missing, "\n")
	for _, want := range []string{"no limit before trimtab", "known for less: shop", "newest curve"} {
		if !strings.Contains(missing, want) {
			t.Errorf("%q is not said: %s", want, missing)
		}
	}
	empty := New(Config{Pool: "p", Resource: "cpu", Round: time.Second, Workloads: []Workload{{Name: "a", Mode: trimtab.Act, Target: .9}, {Name: "b", Mode: trimtab.Off}}}).Report(time.Time{}, now)
	if len(empty.Workloads) != 1 || empty.Total.Minutes != 0 || !strings.Contains(strings.Join(empty.Missing, "\n"), "No curve was learnt yet") {
		t.Errorf("%+v", empty)
	}
}

func TestAnIncidentLastsFromTheFirstMissedReportToTheLast(t *testing.T) {
	now := time.Now()
	v := worked(trimtab.Units(2), now, 120, func(n int) (float64, float64) {
		if n >= 40 && n < 60 {
			return 1, .5 - float64(n)/1000
		}
		return 2, .95
	})
	r := v.Report(now.Add(-10*time.Minute), now)
	if len(r.Incidents) != 1 {
		t.Fatalf("%+v", r.Incidents)
	}
	i := r.Incidents[0]
	if i.Ongoing || i.To.Sub(i.From).Round(time.Second) != 100*time.Second || !near(i.Worst, .441) {
		t.Errorf("%+v lasts %v", i, i.To.Sub(i.From))
	}
	b := r.Workloads[0].Budget
	// 20 of 120 reports miss about half of their requests, of which 10% may.
	if b == nil || !(b.Left < 0.2) || !near(b.Burn["5m"], .5) {
		t.Errorf("budget %+v", b)
	}
	if _, ok := b.Burn["6h"]; ok {
		t.Error("a rate over 6 h of 10 min")
	}
}

func TestReportsAddUpToNoMoreThanTheirPeriod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now()
		n := rapid.IntRange(0, 300).Draw(t, "reports")
		v := worked(trimtab.Units(rapid.Float64Range(0.5, 3).Draw(t, "baseline")), now, n, func(int) (float64, float64) {
			return rapid.Float64Range(0.1, 4).Draw(t, "allocation"), rapid.Float64Range(0, 1).Draw(t, "performance")
		})
		period := time.Duration(rapid.IntRange(1, 60).Draw(t, "minutes")) * time.Minute
		r := v.Report(now.Add(-period), now)
		w := r.Workloads[0]
		if w.Minutes > period.Minutes()+1e-6 || w.SLOMinutes > w.Minutes+1e-6 || w.SLOMinutes < 0 || w.Decisions != 0 {
			t.Fatalf("%v: %+v", period, w)
		}
		if c := w.Compared; c != nil {
			for _, b := range []trimtab.Band{c.Had.SLOMinutes, c.Baseline.SLOMinutes, c.Gain} {
				if !(b.Lower <= b.Mean+1e-9 && b.Mean <= b.Upper+1e-9) {
					t.Fatalf("band %+v of %+v", b, c)
				}
			}
		}
	})
}

func TestMovesAreCountedByWhatCameOfThem(t *testing.T) {
	v := New(Config{Pool: "cpu", Round: time.Second, Workloads: []Workload{{Name: "a", Mode: trimtab.Act}, {Name: "b", Mode: trimtab.Act}}})
	now := time.Now()
	for n := range 6 {
		p := at(n, "a", "b")
		p.Time = now.Add(time.Duration(n-6) * time.Second)
		if n == 5 {
			p.Verdicts = []trimtab.Verdict{{Workload: "a", Plan: "1-1", Verdict: codes.Better}, {Workload: "b", Plan: "1-1", Verdict: codes.Worse}, {Workload: "b", Plan: "1-2", Verdict: codes.Worse}}
		}
		v.Observe(p)
		if n < 4 {
			v.Observe(answer(p, []trimtab.Status{trimtab.Written, trimtab.Written, trimtab.Refused, trimtab.Failed}[n]))
		}
	}
	r := v.Report(now.Add(-time.Hour), now)
	if got := fmt.Sprint(r.Moves, r.Verdicts); got != "[{not answered 4} {written 4} {failed 2} {refused 2}] [{worse 2} {better 1}]" {
		t.Error(got)
	}
	if r.Workloads[0].Decisions != 6 {
		t.Errorf("%d decisions", r.Workloads[0].Decisions)
	}
	if later := v.Report(now.Add(-100*time.Millisecond), now); later.Workloads[0].Decisions != 0 {
		t.Errorf("%d decisions since 100 ms", later.Workloads[0].Decisions)
	}
}

func TestWorkloadsAreSortedAsAskedWithWhatIsNotKnownLast(t *testing.T) {
	v := New(Config{Pool: "p", Resource: "cpu", Round: time.Second, Workloads: []Workload{{Name: "a", Mode: trimtab.Act}, {Name: "b", Mode: trimtab.Act}, {Name: "c", Mode: trimtab.Act}}})
	now := time.Now()
	for name, load := range map[string]float64{"a": 2, "b": 7} {
		v.Observe(&trimtab.Estimate{Workload: name, Time: now, Load: &trimtab.LoadForecast{Now: load}})
	}
	for by, want := range map[string]string{"name": "abc", "-name": "cba", "load": "abc", "-load": "bac", "utility": "abc", "p99": "abc"} {
		f := Filter{Sort: by, Limit: 10}
		if err := f.Validate(); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, r := range v.Page(now, f).Workloads {
			got += r.Name
		}
		if got != want {
			t.Errorf("%s: %s, want %s", by, got, want)
		}
	}
	if err := (&Filter{Sort: "weather"}).Validate(); err == nil {
		t.Error("a key that there is not is taken")
	}
}
