package resctrl_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/resctrl"
	"github.com/trimtab/trimtab/internal/rdt"
)

// open runs an actuator on knobs of both resources of the given control groups.
func (h *host) open(dir string, mode trimtab.Mode, keep bool, paths ...string) *actuator.Actuator {
	h.t.Helper()
	c := actuator.Config{Host: "h", Pool: "p", Dir: dir, LockDir: h.groups + "-locks", Reopen: h.kind.Reopen, KeepOnStop: keep}
	for _, path := range paths {
		targets, err := h.kind.Targets(actuator.Location{Root: h.groups, Path: path}, []actuator.Target{
			{KnobID: trimtab.KnobID{Workload: path, Resource: trimtab.LLC}, Min: 1, Max: 8, Mode: mode},
			{KnobID: trimtab.KnobID{Workload: path, Resource: trimtab.MemBW}, Min: 10, Max: 100, Mode: mode},
		})
		if err != nil {
			h.t.Fatal(err)
		}
		c.Targets = append(c.Targets, targets...)
	}
	a, err := actuator.Open(h.t.Context(), c)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { a.Close(context.Background()) })
	return a
}

// ask hands a plan for ways to an actuator and returns what became of it.
func (h *host) ask(a *actuator.Actuator, sequence uint64, mode trimtab.Mode, path string, expect, set trimtab.Amount) trimtab.Result {
	h.t.Helper()
	p := &trimtab.Plan{
		Pool: "p", Epoch: 1, Sequence: sequence, Step: 1, Last: true, Time: time.Now(), Capacity: 1, Lease: 30,
		Capacities: map[string]float64{trimtab.LLC: 11},
		Actions: []trimtab.Action{{
			KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: path, Resource: trimtab.LLC}, Expect: expect, Set: set, Mode: mode,
		}},
	}
	o := a.Handle(h.t.Context(), p)
	if o.Refused != "" || len(o.Results) != 1 {
		h.t.Fatalf("%+v", o)
	}
	return o.Results[0]
}

func TestAPlanIsCarriedOutAndEndsWithTheActuator(t *testing.T) {
	h := newHost(t, server())
	h.cgroup("web", 10)
	a := h.open(t.TempDir(), trimtab.Act, false, "web")
	if r := h.ask(a, 1, trimtab.Act, "web", trimtab.Unlimited(), trimtab.Units(4)); r.Status != trimtab.Written || r.Found != trimtab.Units(4) {
		t.Errorf("%+v", r)
	}
	if got := h.schemata(10); !strings.HasSuffix(got, "L3:0=00f;1=00f") {
		t.Errorf("%q", got)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := h.trimtabs(); len(got) > 0 {
		t.Errorf("%q are left", got)
	}
}

func TestInRecommendNothingIsWritten(t *testing.T) {
	h := newHost(t, server())
	h.cgroup("web", 10)
	a := h.open(t.TempDir(), trimtab.Recommend, false, "web")
	if r := h.ask(a, 1, trimtab.Recommend, "web", trimtab.Unlimited(), trimtab.Units(4)); r.Status != trimtab.Recommended {
		t.Errorf("%+v", r)
	}
	if got := h.tree.Writes(); len(got) > 0 {
		t.Errorf("it did %q", got)
	}
}

func TestTheJournalAloneRestoresWhatADeadActuatorLeft(t *testing.T) {
	h := newHost(t, server())
	h.cgroup("web", 10)
	dir := t.TempDir()
	a := h.open(dir, trimtab.Act, true, "web")
	h.ask(a, 1, trimtab.Act, "web", trimtab.Unlimited(), trimtab.Units(4))
	if err := a.Close(t.Context()); err != nil || len(h.trimtabs()) != 1 { // it keeps what it set
		t.Fatal(err, h.trimtabs())
	}
	r, err := actuator.Restore(t.Context(), dir, h.kind.Reopen)
	if err != nil || len(h.trimtabs()) > 0 {
		t.Errorf("%v, %v, %q are left", r, err, h.trimtabs())
	}
}

func TestOfAGroupThatAnotherProgramChangedPlansAreRefused(t *testing.T) {
	h := newHost(t, server())
	h.cgroup("web", 10)
	a := h.open(t.TempDir(), trimtab.Act, false, "web")
	h.ask(a, 1, trimtab.Act, "web", trimtab.Unlimited(), trimtab.Units(4))
	group, _ := h.tree.GroupOf(10)
	if err := h.tree.Write(group+"/schemata", "L3:1=3\n"); err != nil {
		t.Fatal(err)
	}
	r := h.ask(a, 2, trimtab.Act, "web", trimtab.Units(4), trimtab.Units(5))
	if r.Status != trimtab.Refused || !strings.Contains(r.Reason, "changed by somebody else") {
		t.Errorf("%+v", r)
	}
	if got := h.schemata(10); !strings.HasSuffix(got, "L3:0=00f;1=003") {
		t.Errorf("%q was not left alone", got)
	}
}

func TestAHostWithoutResctrlSaysSoAndRefusesPlans(t *testing.T) {
	h := newHost(t, server())
	h.cgroup("web", 10)
	h.tree.Unmount()
	a := h.open(t.TempDir(), trimtab.Act, false, "web")
	for _, k := range a.Holding().Targets {
		if k.Problem == "" {
			t.Errorf("%+v: no problem", k)
		}
	}
}

func TestAfterABootWithoutTheTreeARestoreHasNothingToDo(t *testing.T) {
	h := newHost(t, server())
	h.cgroup("web", 10)
	dir := t.TempDir()
	a := h.open(dir, trimtab.Act, true, "web")
	h.ask(a, 1, trimtab.Act, "web", trimtab.Unlimited(), trimtab.Units(4))
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	kind := resctrl.Kind(resctrl.Host{Open: func(string) (rdt.Files, error) { return rdt.Open(empty) }})
	r, err := actuator.Restore(t.Context(), dir, kind.Reopen)
	if err != nil || len(r.Items) != 1 || r.Items[0].Status != trimtab.Refused || !strings.Contains(r.Items[0].Reason, "gone: ") {
		t.Errorf("%+v, %v", r, err)
	}
}
