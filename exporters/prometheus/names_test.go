package prometheus

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/metric"
)

func TestAPeerThatInventsNamesMakesNoSeriesWithoutEnd(t *testing.T) {
	set := metric.NewSet()
	e := New(set)
	for i := range 3 * maxResources {
		name := fmt.Sprint("invented ", i)
		e.Observe(&trimtab.Holding{Host: name, Time: noon, Targets: []trimtab.KnobState{{KnobID: trimtab.KnobID{Host: name, Workload: "w", Resource: name}, Now: trimtab.Units(1)}}})
		e.Observe(&trimtab.Outcome{Pool: name, Host: name, Time: noon, Results: []trimtab.Result{{KnobID: trimtab.KnobID{Pool: name, Host: name, Workload: "w", Resource: name}, Status: trimtab.Status(name)}}})
		e.Observe(&trimtab.Plan{Pool: name, Objective: name + strings.Repeat("x", i), Time: noon, Capacity: 1, Capacities: map[string]float64{name: 1}, Resource: "cpu",
			Audit: &trimtab.Audit{Resources: []trimtab.AuditedResource{{Resource: name, Capacity: 1}}}})
	}
	for name, most := range map[string]int{
		"trimtab_actions_total": maxResources + 1 + 10, "trimtab_workload_allocation": maxResources, "trimtab_pool_capacity": maxPools,
		"trimtab_pool_objective": maxPools, "trimtab_pool_further_capacity": maxResources, "trimtab_pool_used_ratio": maxResources,
	} {
		if n, err := testutil.GatherAndCount(set, name); err != nil || n > most {
			t.Errorf("%s: %d series, limit %d (%v)", name, n, most, err)
		}
	}
	e.Observe(&trimtab.Outcome{Pool: "p", Time: noon, Results: []trimtab.Result{{KnobID: trimtab.KnobID{Pool: "p", Workload: "w", Resource: "later"}, Status: trimtab.Written}}})
	if n := testutil.ToFloat64(set.Counter("trimtab_actions_total", other, "written")); n != 1 {
		t.Errorf("%v actions on further resources", n)
	}
}
