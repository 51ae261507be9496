package view

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
)

const mib = 1 << 20

func TestTheReportSaysHowFarMemoryLimitsWereAndWhichKillsWouldHaveBeenPrevented(t *testing.T) {
	account := &quantity.MemoryAccount{Seconds: 100, Over: 60_000 * mib, AdvisedOver: 3_000 * mib, AdvisedUnder: 100 * mib, Kills: 3, Prevented: 2}
	needs := []quantity.MemoryNeed{{Instance: "a", Account: account}, {Instance: "b", Account: account}, {Instance: "c"}}
	r := Report{Workloads: []WorthOf{{Workload: "shop", Memory: memoryWorth(needs)}, {Workload: "none", Memory: memoryWorth(needs[2:])}}}
	s, ok := r.memory()
	if got := strings.Join(s.Rows[0], " "); !ok || len(s.Rows) != 1 || got != "shop 2 600MiB 0B 30MiB 1MiB 6 4" {
		t.Errorf("%q", s.Rows)
	}
	if _, ok := (&Report{}).memory(); ok {
		t.Error("a section without rows")
	}
}

func TestOnlyInstancesOfWhichTheAnalyzerSaysWhyAreExplained(t *testing.T) {
	limit := 1000.0 * mib
	all := memoryOf([]quantity.MemoryNeed{
		{Instance: "a", Use: 400 * mib, Need: 450 * mib, Limit: &limit, Why: "its peak", Growth: mib, Left: 600, Unlearnt: "it grows"},
		{Instance: "b", Use: 1, Need: 1},
	})
	if want := "a uses 400MiB of a limit of 1000MiB and needs up to 450MiB: its peak. It grows by 60MiB a minute and does not stop: it reaches the limit in 10m0s. The limit is not lowered: it grows."; len(all) != 1 || all[0] != want {
		t.Errorf("%q", all)
	}
}

// memoryView has one workload of which only the memory of two instances is planned, with a need that is as
// well known as it is learnt.
func memoryView(unlearnt string, growth float64) *Model {
	v := New(Config{Pool: "cpu", Resource: "cpu", Capacity: 8, Round: time.Second, Workloads: []Workload{{Name: "cache", Mode: trimtab.Act, MemoryAlone: true}}})
	h := &trimtab.Holding{Pool: "cpu", Host: "h", Time: noon}
	e := &trimtab.Estimate{Workload: "cache", Time: noon, Model: "none", Inputs: []trimtab.Input{{Name: "working_set", Value: 300 * mib}}}
	for i, name := range []string{"a", "b"} {
		id := trimtab.KnobID{Pool: "cpu", Host: "h", Workload: "cache", Instance: name, Resource: trimtab.Memory}
		now, base := trimtab.Units(float64(100+100*i)*mib), trimtab.Units(500*mib)
		h.Targets = append(h.Targets, trimtab.KnobState{KnobID: id, Knob: "cgroup v2 memory " + name, Since: noon, Now: now, Baseline: base, Max: 1 << 30})
		e.Memory = append(e.Memory, quantity.MemoryNeed{Host: "h", Instance: name, Use: 50 * mib, Need: 60 * mib, Limit: &now.Value, Unlearnt: unlearnt, Growth: growth})
	}
	v.Observe(h)
	v.Observe(e)
	return v
}

func TestMemoryThatIsPlannedAloneIsNeverSaidInUnitsOfThePool(t *testing.T) {
	v := memoryView("", 0)
	row := v.Status(noon).Workloads[0]
	if row.Allocation != nil || row.Others[trimtab.Memory].Value != 300*mib || Has(&row) != "memory 300 MiB" {
		t.Errorf("%+v: %s", row.Others, Has(&row))
	}
	e, _ := v.Explain("cache", 0, noon)
	if e.Resource != trimtab.Memory || e.Allocation.Value != 300*mib || e.Baseline.Value != 1000*mib || e.Total != nil || !e.MemoryAlone || Quantity(e.Inputs[0], e.Resource, false) != "300MiB" {
		t.Errorf("%+v, %+v", e.Holds, e.Inputs)
	}
	for i := range e.Knobs {
		if e.Knobs[i].Least {
			t.Errorf("an instance counts as the slowest by its memory: %+v", e.Knobs[i])
		}
	}
	if r := v.Report(noon.Add(-time.Hour), noon); len(r.Missing) != 1 {
		t.Errorf("it lacks what nobody asked for: %q", r.Missing)
	}
}

func TestTheStateOfMemoryThatIsPlannedAloneIsThatOfItsNeed(t *testing.T) {
	for _, c := range []struct {
		unlearnt string
		growth   float64
		state    string
	}{{"", 0, "ok"}, {"it was watched for less than an hour", 0, "learning: it was watched for less than an hour"}, {"its use grows", 1, "held: its use grows"}} {
		if row := memoryView(c.unlearnt, c.growth).Status(noon).Workloads[0]; row.State != c.state {
			t.Errorf("%q, want %q", row.State, c.state)
		}
	}
	v := memoryView("", 0)
	if e, _ := v.Explain("cache", 0, noon); e.Decision != "hold: its limit is what it needs, and the margin" {
		t.Error(e.Decision)
	}
	v.Observe(&trimtab.Plan{Pool: "cpu", Epoch: 1, Sequence: 1, Time: noon, Actions: []trimtab.Action{
		{KnobID: trimtab.KnobID{Pool: "cpu", Host: "h", Workload: "cache", Instance: "a", Resource: trimtab.Memory}, Expect: trimtab.Units(100 * mib), Set: trimtab.Units(90 * mib), Mode: trimtab.Act}}})
	if e, _ := v.Explain("cache", 0, noon); e.Changed != trimtab.Memory || e.Effect != nil {
		t.Errorf("%q, %+v", e.Changed, e.Effect)
	}
}

func TestAChangeOfMemoryIsSaidOfMemoryAlsoBesideCPU(t *testing.T) {
	v := testView()
	p := plan(1, 2)
	p.Time = noon.Add(-time.Hour) // of which there is no estimate
	for i := range p.Actions {
		p.Actions[i].Resource, p.Actions[i].Expect, p.Actions[i].Set = trimtab.Memory, trimtab.Units(400*mib), trimtab.Units(300*mib)
	}
	v.Observe(p)
	if e, _ := v.Explain("shop", 0, noon); e.Changed != trimtab.Memory || e.Resource != "cpu" {
		t.Errorf("%q beside %q", e.Changed, e.Resource)
	}
	h, _ := v.History("shop", noon.Add(-2*time.Hour), noon)
	for _, at := range h.Allocation {
		if at != nil && *at > 100 {
			t.Errorf("bytes among the cores that it had: %v", *at)
		}
	}
}
