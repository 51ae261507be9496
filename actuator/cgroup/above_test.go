package cgroup_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
)

// A real group whose parent has 1 core: of version 1 the kernel refuses more, of version 2 it
// gives what the parent has.
func TestARealGroupGetsWhatItsParentHas(t *testing.T) {
	root := cpuRoot(t)
	parent := makeGroup(t, root)
	child, err := cgroup.Create(root, parent.Path()+"/child")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.Remove(t.Context()) })
	up, own := openKnob(t, cgroup.Config{Root: root, Path: parent.Path()}), openKnob(t, cgroup.Config{Root: root, Path: child.Path()})
	if err := errors.Join(up.Write(t.Context(), trimtab.Units(1)), own.Write(t.Context(), trimtab.Units(0.8))); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	id := trimtab.KnobID{Pool: "p", Host: "h", Workload: "web", Resource: trimtab.CPU}
	knob := openKnob(t, cgroup.Config{Root: root, Path: child.Path()})
	a, err := actuator.Open(t.Context(), actuator.Config{
		Host: "h", Pool: "p", Dir: filepath.Join(dir, "journal"), LockDir: filepath.Join(dir, "locks"), Reopen: reopen,
		Targets: []actuator.Target{{KnobID: id, Knob: knob, Min: 0.1, Max: 4, Mode: trimtab.Act}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(t.Context()) })
	sequence := uint64(0)
	set := func(from, to float64) trimtab.Result {
		sequence++
		o := a.Handle(t.Context(), &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: sequence, Step: 1, Last: true, Time: time.Now(), Capacity: 4, Lease: 30,
			Actions: []trimtab.Action{{KnobID: id, Expect: trimtab.Units(from), Set: trimtab.Units(to), Mode: trimtab.Act}}})
		return o.Results[0]
	}
	if r := set(0.8, 2); r.Status != trimtab.Written || r.Found != trimtab.Units(1) || !strings.Contains(r.Reason, "clamped from 2 to 1: the limit of the group above, "+parent.Path()) {
		t.Errorf("%+v, want 1 core and the parent named", r)
	}
	if r := set(1, 2); r.Status != trimtab.Equal {
		t.Errorf("again: %+v, want nothing to do", r)
	}
	if s := a.Holding().Targets[0].Status; s == nil || s.Most != 1 || !s.Caps {
		t.Errorf("the holding says %+v of what is above", s)
	}
	// A parent that is lowered below the baseline leaves as much as it has.
	set(1, 0.5)
	if err := up.Write(t.Context(), trimtab.Units(0.6)); err != nil {
		t.Fatal(err)
	}
	before := a.Holding().Targets[0].Since
	a.Tick(t.Context())
	if k := a.Holding().Targets[0]; k.Status == nil || k.Status.Most != 0.6 || k.Since != before {
		t.Errorf("%+v, want 0.6 cores above, and nothing new in force", k)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Error(err)
	}
	want := "80000 100000\n"
	if !strings.HasPrefix(own.String(), "cgroup v2") {
		want = "60000 100000\n"
	}
	if got := kernelQuota(t, root, child.Path()); got != want {
		t.Errorf("after the stop it has %q, want %q", got, want)
	}
}
