package analyzer

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab/analyzer/report"
)

// shown is a report each second: allocation, load, performance of 100
// requests.
func shown(w *workload, at int, allocation, load, performance float64) string {
	r := report.Report{At: time.Unix(int64(at), 0), Allocation: &allocation, Load: &load, Performance: &performance, Requests: 100}
	w.recovery.observe(&r, &w.last, w.spec.Target, w.config)
	w.last = r
	return r.Aside
}

func recovering(t *testing.T) *workload {
	t.Helper()
	a, err := New(Config{Workloads: []Workload{{Name: "w", Target: 0.9}}})
	if err != nil {
		t.Fatal(err)
	}
	return a.workloads[0]
}

func TestAShortWorkloadTeachesAndItsWayOutOfShortageDoesNot(t *testing.T) {
	w := recovering(t)
	for i, c := range []struct {
		allocation, performance float64
		aside                   string
	}{
		{4, 0.3, ""}, {4, 0.32, ""}, {4, 0.28, ""}, // short: learnt
		{8, 0.4, ""},          // the change itself: judged by its settling time
		{8, 0.6, "transient"}, // the backlog drains
		{8, 0.8, "transient"},
		{8, 0.95, "transient"},
		{8, 0.96, ""}, // done
		{8, 0.7, ""}, {8, 0.95, ""},
	} {
		if got := shown(w, i, c.allocation, 20, c.performance); got != c.aside {
			t.Errorf("report %d %+v: %q", i, c, got)
		}
	}
}

func TestABacklogThatNeverEndsIsLearntFrom(t *testing.T) {
	w := recovering(t)
	shown(w, 0, 4, 20, 0.1)
	aside := 0
	for i := range 20 {
		if shown(w, i+1, 8, 20, 0.12+0.12*float64(min(i, 7))) != "" {
			aside++
		}
	}
	if aside > patience {
		t.Errorf("%d reports in a row set aside", aside)
	}
}

func TestAWorkloadThatRisesBecauseItsLoadFallsTeaches(t *testing.T) {
	w := recovering(t)
	shown(w, 0, 4, 20, 0.3)
	shown(w, 1, 8, 20, 0.4)
	if got := shown(w, 2, 8, 10, 0.9); got != "" {
		t.Error(got)
	}
}

func TestAWorkloadThatWasWellIsNotRecovering(t *testing.T) {
	w := recovering(t)
	shown(w, 0, 4, 20, 0.91)
	for i, p := range []float64{0.91, 0.99, 1} {
		if got := shown(w, i+1, 8, 20, p); got != "" {
			t.Errorf("report %d: %q", i, got)
		}
	}
}

func TestTheFirstReportAfterASilenceIsSetAsideButNotForever(t *testing.T) {
	w := recovering(t)
	shown(w, 0, 4, 20, 0.95)
	aside := 0
	for i := range 10 {
		if shown(w, 60*(i+1), 4, 20, 0.95) == "transient" {
			aside++
		}
	}
	if aside != patience {
		t.Errorf("%d of 10 lonely reports set aside, want %d", aside, patience)
	}
}

func TestRequestsOfOverlappingWindowsTeachOnce(t *testing.T) {
	w := recovering(t)
	total := 0.0
	for i := range 13 { // 400 requests in 20 s, every 5 s
		r := report.Report{Requests: 400, Window: 20 * time.Second, PerfAt: time.Unix(int64(5*i), 0)}
		total += w.curves.freshOf(&r)
		w.curves.taught = r.PerfAt
	}
	if total != 400+12*100 {
		t.Errorf("taught %v requests, of 1600", total)
	}
	if n := w.curves.freshOf(&report.Report{Requests: 400, Window: 20 * time.Second, PerfAt: w.curves.taught}); n > 1 || n <= 0 {
		t.Errorf("the same report again teaches %v requests", n)
	}
	if n := w.curves.freshOf(&report.Report{Requests: 400, PerfAt: w.curves.taught}); n != 400 {
		t.Errorf("a report of its own requests teaches %v", n)
	}
}
