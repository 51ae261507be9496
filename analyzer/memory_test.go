package analyzer_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
	"github.com/trimtab/trimtab/quantity"
)

// TestAWorkloadAndAnInstanceTakeWhatTheModelSays holds the model of docs/figures.md: the
// analyzer's part of a workload that learns with the default learner, and of an instance.
func TestAWorkloadAndAnInstanceTakeWhatTheModelSays(t *testing.T) {
	bytes := func(workloads, instances int) float64 {
		a := learning(t, workloads, instances)
		var with, without runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&with)
		runtime.KeepAlive(a) // nobody reads it below: it is garbage from here on
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&without)
		return float64(with.HeapAlloc) - float64(without.HeapAlloc)
	}
	one := bytes(10, 1)
	workload := (bytes(25, 1) - one) / 15
	instance := (bytes(10, 11) - one) / 100
	t.Logf("a workload takes %.1f KiB, an instance %.2f KiB", workload/1024, instance/1024)
	if workload > 192<<10 {
		t.Errorf("a workload takes %.1f KiB, want at most 192", workload/1024)
	}
	if instance > 6<<10 {
		t.Errorf("an instance takes %.2f KiB, want at most 6", instance/1024)
	}
}

// learning returns an analyzer that has had 300 reports of each workload.
func learning(t *testing.T, workloads, instances int) *analyzer.Analyzer {
	t.Helper()
	var names []string
	for i := range workloads {
		names = append(names, fmt.Sprintf("w%03d", i))
	}
	c := config(names...)
	for i := range c.Workloads {
		c.Workloads[i].Learner = func() learn.Learner {
			l, err := gp.New(0.9)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
	}
	a := make1(t, c)
	for n := range 300 {
		at := float64(n)
		h := &trimtab.Holding{Host: "h", Time: sec(at)}
		for _, name := range names {
			for i := range instances {
				k := trimtab.KnobState{KnobID: trimtab.KnobID{Host: "h", Workload: name, Instance: fmt.Sprint("i", i), Resource: "cpu"},
					Now: trimtab.Units(1 + float64(n%7)), Since: sec(at - 5), Max: 8}
				h.Targets = append(h.Targets, k)
			}
		}
		a.Step(sec(at), h)
		for _, name := range names {
			a.Step(sec(at+1.6), sketch(name, n, float64(40+n%11), float64(30+n%9)))
			for i := range instances {
				a.Step(sec(at+1.6), &trimtab.Sample{Workload: name, Host: "h", Instance: fmt.Sprint("i", i), Quantity: quantity.Usage, Source: "cgroup", Time: sec(at + 1), Window: 1, Value: 0.5})
			}
		}
		a.Step(sec(at+1.7), nil)
	}
	return a
}
