package view

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

func TestHistoryIsBoundedInOrderAndReachesBackToTheFirstReport(t *testing.T) {
	v := New(Config{Round: time.Second, Workloads: []Workload{{Name: "shop", Mode: trimtab.Act, Utility: func(p float64) float64 { return p }}}})
	allocation := 2.5
	const seconds = 100_000
	for n := range seconds {
		e := report(n, .75)
		e.Allocation = &allocation
		e.Load = &trimtab.LoadForecast{Now: 10, Upper: 12}
		v.Observe(e)
	}
	now := noon.Add(seconds * time.Second)
	h, ok := v.History("shop", time.Time{}, now)
	if !ok || len(h.Time) > MaxHistory || len(h.Time) < MaxHistory/4 {
		t.Fatalf("%d points", len(h.Time))
	}
	for i := range h.Time {
		if i > 0 && h.Time[i] <= h.Time[i-1] {
			t.Fatalf("point %d is at %v, after %v", i, h.Time[i], h.Time[i-1])
		}
		if *h.Allocation[i] != 2.5 || *h.Load[i] != 10 || *h.LoadUpper[i] != 12 || *h.Performance[i] != .75 || *h.Utility[i] != .75 {
			t.Fatalf("point %d: %v %v %v %v %v", i, *h.Allocation[i], *h.Load[i], *h.LoadUpper[i], *h.Performance[i], *h.Utility[i])
		}
	}
	first, last := h.Time[0]-float64(noon.Unix()), h.Time[len(h.Time)-1]-float64(noon.Unix())
	if first > seconds/10 || last != seconds-1 {
		t.Errorf("from %v to %v s", first, last)
	}
	recent, _ := v.History("shop", now.Add(-time.Minute), now)
	if len(recent.Time) != 60 || recent.Every != 0 {
		t.Errorf("the last minute has %d points, every %v s", len(recent.Time), recent.Every)
	}
	if kept := len(v.workloads.all["shop"].series.seen); kept != MaxObservations {
		t.Errorf("%d observations", kept)
	}
}

func TestThePastOfAWorkloadTakesLittleMoreMemoryThanItsPoints(t *testing.T) {
	for _, workloads := range []int{1, 100, 2000} {
		var h series
		for n := range 300_000 {
			h.add(point{at: int64(n), many: 1}, workloads)
		}
		most := room(allLevelPoints, levelPoints, workloads) + merged
		for i, l := range h.levels {
			if len(l) < most/2 || len(l) >= most || cap(l) > most+most/8 {
				t.Errorf("one of %d workloads: level %d has %d points in a place for %d, want at most %d", workloads, i, len(l), cap(l), most)
			}
		}
	}
}

// TestAMeanOfReportsIsTheirMean: a slow sum over all reports against what the
// levels keep.
func TestAMeanOfReportsIsTheirMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h series
		sum, n := 0.0, 0.0
		many := rapid.IntRange(1, 3000).Draw(t, "reports")
		for i := range many {
			p := point{at: int64(i), many: 1}
			for c := range p.v {
				p.v[c] = none()
			}
			p.v[colLoad] = float32(rapid.Float64Range(0, 1).Draw(t, "load"))
			sum, n = sum+float64(p.v[colLoad]), n+1
			h.add(p, 1)
		}
		got, weight, reports := 0.0, 0.0, int32(0)
		for _, p := range h.since(time.Time{}) {
			reports += int32(p.many)
			got, weight = got+float64(p.v[colLoad])*float64(p.many), weight+float64(p.many)
		}
		if int(reports) != many {
			t.Fatalf("%d of %d reports", reports, many)
		}
		if math.Abs(got/weight-sum/n) > 1e-5 {
			t.Fatalf("mean %v, want %v", got/weight, sum/n)
		}
	})
}

func TestAfterARestartTheDecisionsTellTheHistoryUpToTheFirstReport(t *testing.T) {
	v := New(Config{Round: time.Second})
	for n := range 10 {
		v.Observe(at(n, "shop"))
	}
	v.Observe(report(20, .9))
	v.Observe(at(21, "shop"))
	h, _ := v.History("shop", time.Time{}, noon.Add(22*time.Second))
	if len(h.Time) != 11 || *h.Performance[0] != .5 || *h.Allocation[0] != 1 || *h.Performance[10] != .9 {
		t.Errorf("%+v", h)
	}
	if e := effectOf(t, v, 1, 22); e.Performance != Same || *e.After != .5 {
		t.Errorf("what came of a decision before the restart: %+v", e)
	}
}

func TestLatencyAndUseAreKeptBesideTheAllocation(t *testing.T) {
	v, now := New(Config{Round: time.Second}), time.Now()
	for n := range 3 {
		v.Observe(&trimtab.Estimate{Workload: "found", Time: now.Add(time.Duration(n-3) * time.Second), Latency: map[string]trimtab.Seconds{"p50": .01, "p99": trimtab.Seconds(n + 1)},
			Inputs: []trimtab.Input{{Name: "usage", Value: .5 + float64(n)}}})
	}
	v.Observe(&trimtab.Estimate{Workload: "found", Time: now, Inputs: []trimtab.Input{{Name: "usage", Missing: "no answer"}}})
	h, ok := v.History("found", now.Add(-time.Minute), now)
	if !ok || len(h.Time) != 4 || *h.P50[0] != .01 || *h.P99[2] != 3 || *h.Used[1] != 1.5 || h.P95[0] != nil {
		t.Errorf("%+v", h)
	}
	if h.Used[3] != nil || h.P99[3] != nil {
		t.Error("what is missing is a number")
	}
}
