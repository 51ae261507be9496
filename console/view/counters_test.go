package view

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

func TestExplainHasTheCountersOfTheNewestEstimateAsOldAsTheyAre(t *testing.T) {
	at := time.Now().UTC()
	m := New(Config{Workloads: []Workload{{Name: "shop"}}})
	m.Observe(&trimtab.Estimate{Workload: "shop", Time: at, Model: "none", Counters: []trimtab.Input{
		{Name: "cpi", Source: "perf", Missing: "not counted by this machine", Age: 1},
		{Name: "run_delay", Source: "schedstat", Value: 0.25, Age: 2},
		{Name: "context_switches", Source: "perf", Value: 1500, Age: 2},
		{Name: "task_clock", Source: "perf", Value: 1.5, Age: 2},
	}})
	e, ok := m.Explain("shop", 0, at.Add(3*time.Second))
	if !ok || len(e.Counters) != 4 || e.Counters[1].Age != 5 {
		t.Fatalf("%v: %+v", ok, e.Counters)
	}
	for i, want := range []string{"missing: not counted by this machine", "25% of the time that threads could run", "1500/s", "1.5 cores"} {
		if got := Quantity(e.Counters[i], trimtab.CPU, false); got != want {
			t.Errorf("%s: %q, want %q", e.Counters[i].Name, got, want)
		}
	}
}
