package prometheus

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/metric"
)

// counting is an estimate with counters.
func counting(workload string, counters ...trimtab.Input) *trimtab.Estimate {
	return &trimtab.Estimate{Workload: workload, Time: time.Unix(1, 0), Model: "none", Counters: counters}
}

func TestCountersAreExportedWhileTheyAreNotMissing(t *testing.T) {
	set := metric.NewSet()
	e := New(set)
	e.Observe(counting("shop", trimtab.Input{Name: "cpi", Value: 1.5, Source: "perf"}, trimtab.Input{Name: "run_delay", Value: 0.25, Source: "schedstat"}))
	e.Observe(counting("plain"))
	want := `# HELP trimtab_perf_run_delay_ratio Share of the time that the workload's threads could run in which they waited for a CPU, of its worst instance (schedstat)
# TYPE trimtab_perf_run_delay_ratio gauge
trimtab_perf_run_delay_ratio{workload="shop"} 0.25
`
	if err := testutil.GatherAndCompare(set, strings.NewReader(want), "trimtab_perf_run_delay_ratio"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(set, "trimtab_perf_cycles_per_instruction"); n != 1 || err != nil {
		t.Errorf("%d series of cpi, %v", n, err)
	}
	e.Observe(counting("shop", trimtab.Input{Name: "cpi", Missing: "not counted by this machine", Source: "perf"}))
	for _, name := range counterMetrics() {
		if n, err := testutil.GatherAndCount(set, name); n != 0 || err != nil {
			t.Errorf("%s: %d series of what is missing, %v", name, n, err)
		}
	}
}

func TestWhatWaitsIsExportedWhileItIsRead(t *testing.T) {
	set := metric.NewSet()
	e := New(set)
	e.Configure([]Workload{{Name: "shop"}})
	series := func(name string, want int) {
		t.Helper()
		if n, err := testutil.GatherAndCount(set, name); n != want || err != nil {
			t.Errorf("%s: %d series, %v; want %d", name, n, err, want)
		}
	}
	e.Observe(&trimtab.Estimate{Workload: "shop", Time: time.Unix(1, 0), Model: "none", Inputs: []trimtab.Input{{Name: "queued", Value: 17}, {Name: "waited", Missing: "first reading"}}})
	series("trimtab_workload_accept_queue", 1)
	series("trimtab_workload_cpu_wait_ratio", 0)
	e.Observe(&trimtab.Estimate{Workload: "shop", Time: time.Unix(2, 0), Model: "none", Inputs: []trimtab.Input{{Name: "waited", Value: 2.5}}})
	series("trimtab_workload_accept_queue", 0)
	series("trimtab_workload_cpu_wait_ratio", 1)
}

func TestCountersOfManyWorkloadsStayWithinTheirRoom(t *testing.T) {
	set := metric.NewSet()
	e := New(set)
	for i := range maxCounted + 50 {
		e.Observe(counting(fmt.Sprint("w", i), trimtab.Input{Name: "cpi", Value: 1}))
	}
	n, err := testutil.GatherAndCount(set, "trimtab_perf_cycles_per_instruction")
	if n != maxCounted || err != nil || e.countedBytes > maxCountedBytes {
		t.Errorf("%d series, %d bytes, %v", n, e.countedBytes, err)
	}
}
