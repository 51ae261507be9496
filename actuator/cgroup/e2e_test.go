package cgroup_test

import (
	"slices"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
)

func TestAPlanMovesARealQuotaAndCloseRestoresIt(t *testing.T) {
	root := cpuRoot(t)
	g := makeGroup(t, root)
	knob := openKnob(t, cgroup.Config{Root: root, Path: g.Path()})
	a, err := actuator.Open(t.Context(), actuator.Config{
		Host: "h", Pool: "p", Dir: t.TempDir(), Reopen: reopen,
		Targets: []actuator.Target{{KnobID: trimtab.KnobID{Workload: "w", Resource: "cpu"}, Knob: knob, Min: 0.1, Max: 4, Mode: trimtab.Act}},
	})
	if err != nil {
		t.Fatal(err)
	}
	o := a.Handle(t.Context(), &trimtab.Plan{
		Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Last: true, Time: time.Now(), Capacity: 4, Lease: 30,
		Actions: []trimtab.Action{{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "w", Resource: "cpu"}, Expect: trimtab.Unlimited(), Set: trimtab.Units(1.5), Mode: trimtab.Act}},
	})
	if o.Refused != "" || len(o.Results) != 1 || o.Results[0].Status != trimtab.Written || o.Results[0].Found != trimtab.Units(1.5) {
		t.Fatalf("outcome %+v", o)
	}
	if got := kernelQuota(t, root, g.Path()); got != "150000 100000\n" {
		t.Errorf("the kernel has %q", got)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := kernelQuota(t, root, g.Path()); got != unlimited {
		t.Errorf("after the stop the kernel has %q", got)
	}
}

// BenchmarkPlanToRealQuota is one action from the plan in hand to the quota
// read back from the kernel, with the journal on disk.
func BenchmarkPlanToRealQuota(b *testing.B) {
	root := cpuRoot(b)
	g, err := cgroup.Create(root, groupName(b))
	if err != nil {
		b.Fatal(err)
	}
	defer g.Remove(b.Context())
	knob, err := cgroup.Open(cgroup.Config{Root: root, Path: g.Path()})
	if err != nil {
		b.Fatal(err)
	}
	defer knob.Close()
	a, err := actuator.Open(b.Context(), actuator.Config{
		Host: "h", Pool: "p", Dir: b.TempDir(), Reopen: reopen,
		Targets: []actuator.Target{{KnobID: trimtab.KnobID{Workload: "w", Resource: "cpu"}, Knob: knob, Min: 0.1, Max: 4, Mode: trimtab.Act}},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close(b.Context())
	var took []time.Duration
	now, sequence := trimtab.Unlimited(), uint64(0)
	for b.Loop() {
		sequence++
		next := trimtab.Units(1 + float64(sequence%2))
		started := time.Now()
		o := a.Handle(b.Context(), &trimtab.Plan{
			Pool: "p", Epoch: 1, Sequence: sequence, Step: 1, Last: true, Time: started, Capacity: 4, Lease: 30,
			Actions: []trimtab.Action{{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "w", Resource: "cpu"}, Expect: now, Set: next, Mode: trimtab.Act}},
		})
		took = append(took, time.Since(started))
		if o.Refused != "" || o.Results[0].Status != trimtab.Written {
			b.Fatalf("outcome %+v", o)
		}
		now = next
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
}
