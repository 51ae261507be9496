package analyzer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/valid"
	"github.com/trimtab/trimtab/quantity"
)

func TestCountersAreToldOverAllInstances(t *testing.T) {
	now := time.Unix(1000, 0)
	of := func(q quantity.Quantity, instance string, v float64) *trimtab.Sample {
		return &trimtab.Sample{Workload: "w", Host: "h", Instance: instance, Quantity: q, Source: "perf", Time: now.Add(-2 * time.Second), Value: v}
	}
	missing := of(quantity.PageFaults, "b", 0)
	missing.Missing = "first reading"
	var c counters
	for _, s := range []*trimtab.Sample{
		of(quantity.CPI, "a", 1), of(quantity.CPI, "b", 3), of(quantity.CPI, "c", 2),
		of(quantity.ContextSwitches, "a", 10), of(quantity.ContextSwitches, "b", 5),
		of(quantity.PageFaults, "a", 7), missing,
		of(quantity.RunDelay, "", 0.5),
	} {
		if !c.observe(s) {
			t.Fatal(s)
		}
	}
	old := of(quantity.RunDelay, "", 0.9)
	old.Time = now.Add(-time.Minute)
	c.observe(old) // late: it counts no more
	want := []trimtab.Input{
		{Name: "context_switches", Value: 15, Age: 2, Source: "perf, sum of 2"},
		{Name: "cpi", Value: 3, Age: 2, Source: "perf, highest of 3"},
		{Name: "page_faults", Age: 2, Source: "perf, sum of 2", Missing: "first reading"},
		{Name: "run_delay", Value: 0.5, Age: 2, Source: "perf"},
	}
	if diff := cmp.Diff(want, c.inputs(now)); diff != "" {
		t.Error(diff)
	}
	c.forget(now)
	if got := c.inputs(now); len(got) != 0 {
		t.Errorf("of instances that are gone: %v", got)
	}
}

func TestCountersOfInventedInstancesAreBounded(t *testing.T) {
	var c counters
	taken := 0
	for i := range 2 * maxCounters {
		if c.observe(&trimtab.Sample{Workload: "w", Host: "h", Instance: fmt.Sprint(i), Quantity: quantity.CPI, Time: time.Unix(1, 0)}) {
			taken++
		}
	}
	if taken != maxCounters || len(c.newest) != maxCounters {
		t.Errorf("%d taken, %d kept", taken, len(c.newest))
	}
}

func TestACounterWithTooLongATextIsNotTold(t *testing.T) {
	var c counters
	long := &trimtab.Sample{Workload: "w", Quantity: quantity.CPI, Time: time.Unix(1, 0), Missing: strings.Repeat("x", valid.MaxText)}
	if c.observe(long) || len(c.inputs(time.Unix(2, 0))) != 0 {
		t.Error("it was taken")
	}
}
