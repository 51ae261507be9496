package view

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// At the client 0% is in time; the spans of what was answered say 99.3%, or stop.
func TestAWorkloadThatStarvesIsNeverCalledOk(t *testing.T) {
	v := New(Config{Pool: "p", Resource: "cpu", Round: time.Second, Workloads: []Workload{{Name: "shop", Mode: trimtab.Act, Share: true, Target: .95, SLO: "95% under 200ms"}}})
	v.Observe(&trimtab.Holding{Pool: "p", Host: "h", Time: noon, LeaseLeft: 60, Targets: []trimtab.KnobState{{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "shop", Resource: "cpu"}, Now: trimtab.Units(.16), Max: 2}}})
	curve := &trimtab.Curve{Load: 5, Level: .9, Knots: []trimtab.Knot{{Allocation: 1, Band: trimtab.Band{Lower: 1, Mean: 1, Upper: 1}}}}
	within := .993
	for at, e := range []*trimtab.Estimate{
		{Performance: &within, Curve: curve, Starved: 8},
		{Performance: &within, Curve: curve, Starved: 8, Hold: &trimtab.Held{Code: codes.HeldStale, Text: "no load from spans for 8s; it uses all of its 0.16 cores and waits", Input: "load"}},
		{Curve: curve, Starved: 8, Hold: &trimtab.Held{Code: codes.HeldStale, Text: "no load from spans for 8s; it uses all of its 0.16 cores and waits", Input: "load"}},
	} {
		now := noon.Add(time.Duration(at+1) * time.Second)
		e.Workload, e.Time = "shop", now
		v.Observe(e)
		r := v.Status(now).Workloads[0]
		if r.Code != "starved" || r.Kind != "bad" || !strings.Contains(r.State, "waits") {
			t.Errorf("%d: %s, %s: %q", at, r.Code, r.Kind, r.State)
		}
	}
	v.Observe(&trimtab.Estimate{Workload: "shop", Time: noon.Add(4 * time.Second), Performance: &within, Curve: curve, Starved: 8, Inputs: []trimtab.Input{{Name: "queued", Value: 17, Source: "sockets"}}})
	if r := v.Status(noon.Add(4 * time.Second)).Workloads[0]; !strings.HasSuffix(r.State, ": 17 connections wait to be accepted") {
		t.Errorf("state %q: want what waits", r.State)
	}
	now := noon.Add(5 * time.Second)
	v.Observe(&trimtab.Estimate{Workload: "shop", Time: now, Performance: &within, Curve: curve})
	if r := v.Status(now).Workloads[0]; r.Code != "ok" {
		t.Errorf("when that is over: %s", r.Code)
	}
}

func TestAWorkloadWhosePerformanceRisesWhenThingsGetWorseIsNeverCalledOk(t *testing.T) {
	v := New(Config{Pool: "p", Resource: "cpu", Round: time.Second, Workloads: []Workload{{Name: "shop", Mode: trimtab.Act, Target: .3, Doubt: "performance is a percentile of latency, which rises when things get worse"}}})
	slow := 2.5
	v.Observe(&trimtab.Estimate{Workload: "shop", Time: noon, Performance: &slow,
		Curve: &trimtab.Curve{Load: 5, Level: .9, Knots: []trimtab.Knot{{Allocation: 1, Band: trimtab.Band{Lower: 1, Mean: 1, Upper: 1}}}}})
	if r := v.Status(noon).Workloads[0]; r.Code != "doubtful" || r.Kind != "note" || !strings.HasPrefix(r.State, "doubtful: performance is a percentile of latency") {
		t.Errorf("%s, %s: %q", r.Code, r.Kind, r.State)
	}
	v.Observe(&trimtab.Estimate{Workload: "shop", Time: noon.Add(time.Second), Performance: &slow})
	if r := v.Status(noon.Add(time.Second)).Workloads[0]; r.Code != "learning" {
		t.Errorf("%s: %q: want what it waits for, which comes first", r.Code, r.State)
	}
}

// 10 minutes of 20 requests a second, all in time; then it starves, and nothing is measured any
// more for 40 minutes.
func TestMinutesInWhichAStarvedWorkloadWasNotMeasuredCountAsMissed(t *testing.T) {
	v := New(Config{Pool: "p", Resource: "cpu", Round: 10 * time.Second, Workloads: []Workload{{Name: "shop", Mode: trimtab.Act, Share: true, Target: .9, SLO: "90% under 200ms"}}})
	all, now := 1., noon
	load := &trimtab.LoadForecast{Now: 20, Mean: 20, Upper: 25, Level: .9, Model: "naive"}
	for k := range 300 {
		now = now.Add(10 * time.Second)
		e := &trimtab.Estimate{Workload: "shop", Time: now, Load: load, Performance: &all}
		if k >= 60 {
			e.Performance, e.Starved = nil, trimtab.Seconds(10*(k-59))
			e.Hold = &trimtab.Held{Code: codes.HeldStale, Text: "no load from spans", Input: "load"}
		}
		v.Observe(e)
	}
	r := v.Report(noon, now)
	w := r.Workloads[0].Worth
	if math.Abs(w.Minutes-50) > 1 || math.Abs(w.SLOMinutes-10) > 1 || math.Abs(w.Starved-40) > 1 {
		t.Errorf("%.1f minutes, %.1f met, %.1f starved: want 50, 10 and 40", w.Minutes, w.SLOMinutes, w.Starved)
	}
	if text := strings.Join(r.Missing, "\n"); !strings.Contains(text, "Not measured and starved, which counts as missed: shop 40 min") {
		t.Errorf("%s", text)
	}
	if n := len(r.Incidents); n != 1 || r.Incidents[0].Worst != 0 {
		t.Errorf("%+v", r.Incidents)
	}
	b := v.Status(now).Workloads[0].Budget
	if b == nil || math.Abs(b.Left-(1-0.8/0.1)) > 0.4 || math.Abs(b.Burn["5m"]-10) > 1e-6 {
		t.Errorf("budget %+v: want 80%% of the requests missed, where 10%% may be", b)
	}
}

// An estimate that is told again each round says nothing of these rounds.
func TestAPerformanceOfLongAgoIsNotCountedAgain(t *testing.T) {
	v := New(Config{Pool: "p", Resource: "cpu", Round: 10 * time.Second, Workloads: []Workload{{Name: "shop", Mode: trimtab.Act, Share: true, Target: .9}}})
	all, now := 1., noon
	for k := range 120 {
		now = now.Add(10 * time.Second)
		e := &trimtab.Estimate{Workload: "shop", Time: now, Performance: &all}
		if k >= 60 {
			e.Hold = &trimtab.Held{Code: codes.HeldStale, Text: "no load from spans", Input: "load"}
		}
		v.Observe(e)
	}
	if w := v.Report(noon, now).Workloads[0].Worth; math.Abs(w.Minutes-10) > 0.5 {
		t.Errorf("%.1f minutes are known, want 10", w.Minutes)
	}
}

// Before trimtab has given anything, three groups have no limit on a host of 2 cores.
func TestWhatHasNoLimitIsGivenNothing(t *testing.T) {
	v := New(Config{Pool: "p", Resource: "cpu", Capacity: .7, Round: time.Second, Workloads: []Workload{{Name: "a"}, {Name: "b"}, {Name: "c"}}})
	h := &trimtab.Holding{Pool: "p", Host: "h", Time: noon, LeaseLeft: 60, Capacity: map[string]float64{"cpu": 2}}
	for _, name := range []string{"a", "b", "c"} {
		h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: name, Resource: "cpu"}, Now: trimtab.Unlimited(), Max: .7})
	}
	v.Observe(h)
	s := v.Status(noon)
	if s.Allocated != trimtab.Units(0) || s.Unlimited != 3 {
		t.Errorf("allocated %v, %d without a limit", s.Allocated, s.Unlimited)
	}
	host, ok := v.Host("h", "", 10, 0, noon)
	if !ok || host.Kind != "ok" || host.Resources[0].Given != 0 || *host.Resources[0].Free != 2 || host.Resources[0].Unlimited != 3 {
		t.Errorf("%+v", host.Host)
	}
}
