package prometheus

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/metric"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestAValueThatGoesMissingIsRemovedNotZeroed(t *testing.T) {
	set := metric.NewSet()
	e := New(set)
	p := 0.9
	e.Observe(&trimtab.Estimate{Workload: "w", Time: noon, Performance: &p, Load: &trimtab.LoadForecast{Now: 3, Upper: 4}})
	if err := testutil.GatherAndCompare(set.Registry(), strings.NewReader(`
# HELP trimtab_workload_performance Performance in the unit of its SLO, newest report
# TYPE trimtab_workload_performance gauge
trimtab_workload_performance{workload="w"} 0.9
`), "trimtab_workload_performance"); err != nil {
		t.Error(err)
	}
	e.Observe(&trimtab.Estimate{Workload: "w", Time: noon, Hold: "no spans"})
	for name, want := range map[string]int{"trimtab_workload_performance": 0, "trimtab_workload_load": 0, "trimtab_workload_held": 1} {
		if n, err := testutil.GatherAndCount(set.Registry(), name); err != nil || n != want {
			t.Errorf("%s: %d series, want %d (%v)", name, n, want, err)
		}
	}
}

func TestAnUnlimitedKnobHasNoAllocationSeries(t *testing.T) {
	set := metric.NewSet()
	e := New(set)
	h := &trimtab.Holding{Host: "h", Time: noon, Targets: []trimtab.Held{{Target: "w", Resource: "cpu", Now: trimtab.Units(1)}}}
	e.Observe(h)
	if n, _ := testutil.GatherAndCount(set.Registry(), "trimtab_workload_allocation"); n != 1 {
		t.Fatal(n)
	}
	e.Observe(&trimtab.Holding{Host: "h", Time: noon, Targets: []trimtab.Held{{Target: "w", Resource: "cpu", Now: trimtab.Unlimited()}}})
	if n, _ := testutil.GatherAndCount(set.Registry(), "trimtab_workload_allocation"); n != 0 {
		t.Error(n)
	}
}

func TestOutcomesAreCountedByStatus(t *testing.T) {
	set := metric.NewSet()
	e := New(set)
	o := &trimtab.Outcome{Pool: "p", Time: noon, Results: []trimtab.Result{{Target: "w", Resource: "cpu", Status: trimtab.Written}, {Target: "v", Resource: "cpu", Status: trimtab.Refused}}}
	e.Observe(o)
	e.Observe(o)
	if v := testutil.ToFloat64(set.Counter("trimtab_actions_total", "cpu", "written")); v != 2 {
		t.Error(v)
	}
}
