package analyzer

import (
	"cmp"
	"math"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn/queue"
	"github.com/trimtab/trimtab/analyzer/report"
	"github.com/trimtab/trimtab/quantity"
)

// What is set for a workload that shares by weight is the least that it has. What a report
// teaches is what it really had.
func TestAShareTeachesOnlyWhatTheWorkloadReallyHad(t *testing.T) {
	end := time.Unix(1_700_000_000, 0).UTC()
	for name, c := range map[string]struct {
		set, use, throttled float64
		allocation          float64
		aside               string
		waiting             float64
	}{
		"nothing waited: it is what its maximum reaches":     {0.2, 0.1, 0, 4, "", 0},
		"it used what others left, and nothing waited":       {0.2, 0.9, 0.01, 4, "", 0},
		"all was in use: it had what it used at least":       {0.2, 0.5, 0.9, 0.5, "shared", 0},
		"all was in use, and it wanted less than it may":     {0.2, 0.1, 0.9, 0.2, "shared", 0},
		"all was in use at times: nobody knows what it had":  {0.2, 0.3, 0.3, 0.3, "shared", 0},
		"it used more than its maximum while nothing waited": {0.2, 5, 0, 5, "", 0},
		"all was in use, and it works off a backlog":         {0.2, 0.5, 0.9, 0.5, "shared", 30},
	} {
		w := newWorkload(&Config{Report: time.Second, Round: time.Second, StaleAfter: 3}, nil, Workload{Name: "shop", Max: 4})
		w.queueing.model = queue.New(0.2)
		for k := range 10 {
			at := end.Add(time.Duration(k-9) * time.Second)
			for q, v := range map[quantity.Quantity]float64{quantity.Throttled: c.throttled, quantity.Usage: c.use} {
				w.queueing.observe(&trimtab.Sample{Workload: "shop", Quantity: q, Value: v, Time: at, Window: 1})
			}
		}
		// Throttled comes before or after the use of its window.
		for i := range w.queueing.used {
			w.queueing.used[i].throttled = c.throttled
		}
		w.queueing.waiting = c.waiting
		var r report.Report
		w.reportShare(&r, report.InForce{Known: true, Shared: true, Amount: trimtab.Units(c.set), Mean: c.set}, end.Add(-time.Second), end)
		if r.Allocation == nil || math.Abs(*r.Allocation-c.allocation) > 1e-9 || r.Aside != c.aside {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestAShareWithoutMeasuredUseTeachesNothing(t *testing.T) {
	w := newWorkload(&Config{Report: time.Second, Round: time.Second, StaleAfter: 3}, nil, Workload{Name: "shop", Max: 4})
	var r report.Report
	now := time.Unix(1_700_000_000, 0).UTC()
	w.reportShare(&r, report.InForce{Known: true, Shared: true, Amount: trimtab.Units(1)}, now, now.Add(time.Second))
	if r.Allocation != nil || r.NoAlloc == "" {
		t.Errorf("%+v", r)
	}
}

// A group above lets 1 of its 4 cores through: no more is reached by what nobody waits for.
func TestAShareBelowALimitAboveIsNoMoreThanThatLimit(t *testing.T) {
	end := time.Unix(1_700_000_000, 0).UTC()
	w := newWorkload(&Config{Report: time.Second, Round: time.Second, StaleAfter: 3}, nil, Workload{Name: "shop", Max: 4})
	w.queueing.model = queue.New(0.2)
	for k := range 10 {
		w.queueing.observe(&trimtab.Sample{Workload: "shop", Quantity: quantity.Usage, Value: 0.3, Time: end.Add(time.Duration(k-9) * time.Second), Window: 1})
	}
	room := 10
	for at, above := range []float64{0, 1, 0} {
		told := end.Add(time.Duration(at) * time.Millisecond)
		state := trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "shop"}, Now: trimtab.Units(2), Since: end.Add(-time.Minute), Max: 4, Shared: true}
		if above > 0 {
			state.Status = &trimtab.KnobStatus{Most: above, By: "the limit of the group above, shop", Caps: true}
		}
		w.held.Observe(&trimtab.Holding{Pool: "p", Host: "h", Time: told, Targets: []trimtab.KnobState{state}}, "shop", &room)
		var r report.Report
		w.reportShare(&r, report.InForce{Known: true, Shared: true, Amount: trimtab.Units(2), Mean: 2}, end.Add(-time.Second), end)
		if want := cmp.Or(above, 4); r.Allocation == nil || *r.Allocation != want {
			t.Errorf("a limit of %v above: %+v, want %v", above, r, want)
		}
	}
}

// Nothing tells trimtab whether a node was full. A workload that is late had at least its request,
// and would be late with the request alone, too; one that is in time would be with its maximum, too.
func TestARequestTeachesItselfWhereItIsLateAndTheMaximumWhereItIsInTime(t *testing.T) {
	end := time.Unix(1_700_000_000, 0).UTC()
	for _, c := range []struct {
		performance, use, want float64 // use < 0: not measured
	}{{0.95, 0.3, 4}, {0.5, 0.3, 2}, {0.5, 2.6, 2.6}, {0.95, -1, 4}, {0.5, -1, 2}} {
		w := newWorkload(&Config{Report: time.Second, Round: time.Second, StaleAfter: 3}, nil, Workload{Name: "shop", Max: 4, Target: 0.9})
		w.queueing.model = queue.New(0.2)
		for k := range 10 {
			if c.use >= 0 {
				w.queueing.observe(&trimtab.Sample{Workload: "shop", Quantity: quantity.Usage, Value: c.use, Time: end.Add(time.Duration(k-9) * time.Second), Window: 1})
			}
		}
		r := report.Report{Performance: &c.performance}
		w.reportShare(&r, report.InForce{Known: true, Shared: true, Open: true, Amount: trimtab.Units(2), Mean: 2}, end.Add(-time.Second), end)
		if r.Allocation == nil || math.Abs(*r.Allocation-c.want) > 1e-9 || r.Aside != "" {
			t.Errorf("%+v: %+v", c, r)
		}
	}
}
