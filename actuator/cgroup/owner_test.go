package cgroup_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
)

const unlimited = "max 100000\n"

// systemdsOwn is a file of the group in which systemd itself is: where that group is, systemd
// manages the hierarchy.
const systemdsOwn = "init.scope/cgroup.procs"

func TestAGroupOfASystemdUnitIsReadAndItsWriteIsRefusedWithAHint(t *testing.T) {
	for path, unit := range map[string]string{
		"shop.slice/checkout.service": "checkout.service", "shop.slice/checkout.service/inner": "checkout.service",
		"user.slice/session.scope": "session.scope", "shop.slice": "shop.slice", "shop.slice/plain": "shop.slice",
	} {
		root := tree(t, map[string]string{path + "/cpu.max": unlimited, systemdsOwn: ""})
		k := openKnob(t, cgroup.Config{Root: root, Path: path})
		if v, err := k.Read(t.Context()); err != nil || !v.Unlimited || k.Probe(t.Context()) != nil {
			t.Errorf("%s: read %v, %v, probe %v", path, v, err, k.Probe(t.Context()))
		}
		for _, err := range []error{k.MayWrite(t.Context()), k.Write(t.Context(), trimtab.Units(1))} {
			if !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), unit) || !strings.Contains(err.Error(), "Delegate=yes") {
				t.Errorf("%s: %v", path, err)
			}
		}
		if got := content(t, root, path, "cpu.max"); got != unlimited {
			t.Errorf("%s: it wrote %q", path, got)
		}
		forced := openKnob(t, cgroup.Config{Root: root, Path: path, Force: true})
		if err := errors.Join(forced.MayWrite(t.Context()), forced.Write(t.Context(), trimtab.Units(1))); err != nil {
			t.Errorf("%s, forced: %v", path, err)
		}
	}
}

func TestANameThatEndsInServiceOrSliceIsNobodysWithoutSystemd(t *testing.T) {
	for _, path := range []string{"shop.slice/checkout.service", "shop.slice", "session.scope/inner", "shop/web@a.service"} {
		root := tree(t, map[string]string{path + "/cpu.max": unlimited})
		k := openKnob(t, cgroup.Config{Root: root, Path: path})
		if err := errors.Join(k.MayWrite(t.Context()), k.Write(t.Context(), trimtab.Units(1))); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestAGroupThatSystemdCannotHaveMadeIsNobodys(t *testing.T) {
	root := tree(t, map[string]string{"own/web@a.service/cpu.max": unlimited, systemdsOwn: ""})
	if err := openKnob(t, cgroup.Config{Root: root, Path: "own/web@a.service"}).MayWrite(t.Context()); err != nil {
		t.Errorf("units lie in slices alone: %v", err)
	}
}

func TestAKnobNamesTheSystemdUnitWhoseOwnGroupItTurns(t *testing.T) {
	for _, c := range []struct{ path, systemd, want string }{
		{"shop.slice/checkout.service", systemdsOwn, "checkout.service"},
		{"shop.slice", systemdsOwn, "shop.slice"},
		{"system.slice/docker-1.scope", systemdsOwn, "docker-1.scope"},
		{"shop.slice/checkout.service/inner.service", systemdsOwn, ""}, // a group below a unit has a limit of its own
		{"own/web@a.service", systemdsOwn, ""},
		{"shop.slice/plain", systemdsOwn, ""},
		{"shop.slice/checkout.service", "other/cgroup.procs", ""},
	} {
		root := tree(t, map[string]string{c.path + "/cpu.max": unlimited, c.path + "/memory.max": "max\n", c.systemd: ""})
		memory, err := cgroup.OpenMemory(cgroup.Config{Root: root, Path: c.path})
		if err != nil {
			t.Fatal(err)
		}
		defer memory.Close()
		for _, k := range []actuator.Knob{openKnob(t, cgroup.Config{Root: root, Path: c.path}), memory} {
			if got := k.Traits().Unit(); got != c.want {
				t.Errorf("%s beside %s: %s is that of %q, want %q", c.path, c.systemd, k, got, c.want)
			}
		}
	}
}

func TestARealGroupIsSystemdsWhereSystemdRunsAndNotByItsName(t *testing.T) {
	root := cpuRoot(t)
	_, booted := os.Stat("/run/systemd/system")
	_, above := os.Stat("/sys/fs/cgroup/init.scope")
	_, beside := os.Stat("/sys/fs/cgroup/systemd/init.scope")
	runs := booted == nil || above == nil || beside == nil
	g, err := cgroup.Create(root, groupName(t)+".slice")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Remove(t.Context())
	if err := openKnob(t, cgroup.Config{Root: root, Path: g.Path()}).MayWrite(t.Context()); errors.Is(err, trimtab.ErrRefused) != runs {
		t.Errorf("systemd runs: %v, error %v", runs, err)
	}
}

func TestADelegatedUnitIsFree(t *testing.T) {
	root := tree(t, map[string]string{"a.slice/b.service/c/cpu.max": unlimited, systemdsOwn: ""})
	unit := filepath.Join(root, "a.slice/b.service")
	if err := unix.Setxattr(unit, "user.delegate", []byte("1"), 0); err != nil {
		if root := unix.Setxattr(unit, "trusted.delegate", []byte("1"), 0); root != nil {
			skip(t, "no extended attributes here: %v, %v", err, root)
		}
	}
	k := openKnob(t, cgroup.Config{Root: root, Path: "a.slice/b.service/c"})
	if err := k.MayWrite(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestARootInsideAUnitIsTheUnits(t *testing.T) {
	root := filepath.Join(tree(t, map[string]string{"a.slice/b.service/c/cpu.max": unlimited, systemdsOwn: ""}), "a.slice/b.service")
	if err := openKnob(t, cgroup.Config{Root: root, Path: "c"}).MayWrite(t.Context()); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("error %v, want refused", err)
	}
}

func TestAGroupWithoutTheControllerIsUnsupported(t *testing.T) {
	root := tree(t, map[string]string{"a/cgroup.procs": ""})
	if err := openKnob(t, cgroup.Config{Root: root, Path: "a"}).Probe(t.Context()); !errors.Is(err, trimtab.ErrUnsupported) {
		t.Errorf("error %v, want unsupported", err)
	}
	if err := openKnob(t, cgroup.Config{Root: root, Path: "b"}).Probe(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want that it does not exist", err)
	}
}

func TestAPathOutsideTheRootIsRefused(t *testing.T) {
	root := tree(t, map[string]string{"a/cpu.max": unlimited})
	for _, path := range []string{"", ".", "..", "../x", "/a", "a/../..", "a/../../x"} {
		if _, err := cgroup.Open(cgroup.Config{Root: root, Path: path}); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%q: %v, want invalid", path, err)
		}
		if _, err := cgroup.Create(root, path); err == nil {
			t.Errorf("create %q: no error", path)
		}
	}
}

func TestTheLeastLimitAboveIsNamedAndBoundsWhatIsInForce(t *testing.T) {
	for version, files := range map[int]map[string]string{
		1: {"a/cpu.cfs_quota_us": "400000\n", "a/cpu.cfs_period_us": "200000\n", "a/b/cpu.cfs_quota_us": "300000\n", "a/b/cpu.cfs_period_us": "100000\n",
			"a/b/c/cpu.cfs_quota_us": "100000\n", "a/b/c/cpu.cfs_period_us": "100000\n"},
		2: {"a/cpu.max": "200000 100000\n", "a/b/cpu.max": "max 100000\n", "a/b/c/cpu.max": "100000 100000\n"},
	} {
		k := openKnob(t, cgroup.Config{Root: tree(t, files), Path: "a/b/c"})
		s := k.Status(t.Context())
		if s == nil || s.Most != 2 || !s.Caps || !strings.Contains(s.By, "above, a") {
			t.Fatalf("version %d: %+v, want the 2 cores of a", version, s)
		}
		for set, want := range map[trimtab.Amount]trimtab.Amount{trimtab.Units(1): trimtab.Units(1), trimtab.Units(3): trimtab.Units(2), trimtab.Unlimited(): trimtab.Units(2)} {
			if got := s.Cap(set); got != want {
				t.Errorf("version %d: set to %v, %v are in force, want %v", version, set, got, want)
			}
		}
		err := k.Write(t.Context(), trimtab.Units(3))
		if refused := errors.Is(err, trimtab.ErrRefused) && strings.Contains(err.Error(), "parent a "); refused != (version == 1) || !refused && err != nil {
			t.Errorf("version %d: more than a gives: %v, want what the kernel says", version, err)
		}
		if err := errors.Join(k.Write(t.Context(), trimtab.Units(2)), k.Write(t.Context(), trimtab.Unlimited())); err != nil {
			t.Errorf("version %d: as much as a gives, and without limit: %v", version, err)
		}
	}
	free := openKnob(t, cgroup.Config{Root: tree(t, map[string]string{"a/cpu.max": "max 100000\n", "a/b/cpu.max": "100000 100000\n"}), Path: "a/b"})
	if s := free.Status(t.Context()); s != nil {
		t.Errorf("nothing above has a limit: %+v", s)
	}
}

func TestADeclaredParentIsRaisedFirstAndGivenBackLast(t *testing.T) {
	root := tree(t, map[string]string{"a/cpu.max": "200000 100000\n", "a/b/cpu.max": "100000 100000\n"})
	k := openKnob(t, cgroup.Config{Root: root, Path: "a/b", Parents: []cgroup.Parent{{Path: "a", Raise: 4}}})
	if s := k.Status(t.Context()); s == nil || s.Most != 4 {
		t.Errorf("%+v, want what the parent may be raised to", s)
	}
	if err := k.Write(t.Context(), trimtab.Units(3)); err != nil {
		t.Fatal(err)
	}
	if a, b := content(t, root, "a/cpu.max"), content(t, root, "a/b/cpu.max"); a != "400000 100000" || b != "300000 100000" {
		t.Errorf("parent %q, child %q", a, b)
	}
	// Another process, from the journal.
	again, err := cgroup.Reopen(k.Undo())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := again.Write(t.Context(), trimtab.Units(1)); err != nil {
		t.Fatal(err)
	}
	if a, b := content(t, root, "a/cpu.max"), content(t, root, "a/b/cpu.max"); a != "200000 100000" || b != "100000 100000" {
		t.Errorf("after: parent %q, child %q", a, b)
	}
}

// Version 1 refuses more than the parent has; version 2 takes it, and gives what the parent has.
func TestARealKernelWantsTheParentFirst(t *testing.T) {
	root := cpuRoot(t)
	parent := makeGroup(t, root)
	child, err := cgroup.Create(root, parent.Path()+"/child")
	if err != nil {
		t.Fatal(err)
	}
	defer child.Remove(t.Context())
	up := openKnob(t, cgroup.Config{Root: root, Path: parent.Path()})
	if err := up.Write(t.Context(), trimtab.Units(1)); err != nil {
		t.Fatal(err)
	}
	plain := openKnob(t, cgroup.Config{Root: root, Path: child.Path()})
	if err := plain.Write(t.Context(), trimtab.Units(0.5)); err != nil {
		t.Fatal(err)
	}
	err = plain.Write(t.Context(), trimtab.Units(2))
	if strings.HasPrefix(plain.String(), "cgroup v2") {
		if s := plain.Status(t.Context()); err != nil || s == nil || s.Most != 1 || !s.Caps || !strings.Contains(s.By, parent.Path()) {
			t.Errorf("error %v, above it %+v: want it written, and the parent named", err, s)
		}
	} else if !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), parent.Path()) {
		t.Errorf("error %v, want the parent named", err)
	}
	k := openKnob(t, cgroup.Config{Root: root, Path: child.Path(), Parents: []cgroup.Parent{{Path: parent.Path(), Raise: 3}}})
	if err := k.Write(t.Context(), trimtab.Units(2)); err != nil {
		t.Fatal(err)
	}
	if got := kernelQuota(t, root, parent.Path()); got != "300000 100000\n" {
		t.Errorf("the parent has %q", got)
	}
	if err := k.Write(t.Context(), trimtab.Units(0.5)); err != nil {
		t.Fatal(err)
	}
	if got := kernelQuota(t, root, parent.Path()); got != "100000 100000\n" {
		t.Errorf("afterwards the parent has %q", got)
	}
}

func TestARealProcessIsHeldToItsQuota(t *testing.T) {
	root := cpuRoot(t)
	g := makeGroup(t, root)
	k := openKnob(t, cgroup.Config{Root: root, Path: g.Path()})
	if err := k.Write(t.Context(), trimtab.Units(0.1)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	if err := g.AddProcess(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(time.Minute)
	for {
		if stat := content(t, root, g.Path(), "cpu.stat"); !strings.Contains(stat, "nr_throttled 0\n") {
			return
		}
		select {
		case <-deadline:
			t.Fatal("it was never throttled")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestAGroupWithAProcessIsRemovedOnceItEnded(t *testing.T) {
	root := cpuRoot(t)
	g, err := cgroup.Create(root, groupName(t))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := g.AddProcess(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { cmd.Process.Kill(); cmd.Wait(); close(ended) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := g.Remove(ctx); err != nil {
		t.Error(err)
	}
	<-ended
	if _, err := os.Stat(filepath.Join(root, g.Path())); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
}

func TestAGroupBeneathOneWithProcessesHasNoControllerInVersion2(t *testing.T) {
	root := cpuRoot(t)
	parent := makeGroup(t, root)
	if _, err := os.Stat(filepath.Join(root, parent.Path(), "cgroup.type")); err != nil {
		t.Skipf("version 1 allows it: %v", err)
	}
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if err := parent.AddProcess(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if err := cgroup.Writable(filepath.Join(root, parent.Path())); !errors.Is(err, trimtab.ErrUnsupported) {
		t.Errorf("error %v, want unsupported", err)
	}
	if got := content(t, root, parent.Path(), "cgroup.type"); got != "domain\n" {
		t.Errorf("the group became %q", got)
	}
}

func TestAVanishedRealGroupIsReportedAndTheOthersGoOn(t *testing.T) {
	root := cpuRoot(t)
	var targets []actuator.Target
	groups := []*cgroup.Group{makeGroup(t, root), makeGroup(t, root)}
	for i, g := range groups {
		knob := openKnob(t, cgroup.Config{Root: root, Path: g.Path()})
		targets = append(targets, actuator.Target{KnobID: trimtab.KnobID{Workload: string(rune('a' + i)), Resource: "cpu"}, Knob: knob, Min: 0.1, Max: 4, Mode: trimtab.Act})
	}
	a, err := actuator.Open(t.Context(), actuator.Config{Host: "h", Pool: "p", Dir: t.TempDir(), Reopen: reopen, Targets: targets})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close(t.Context())
	act := func(sequence uint64, expect trimtab.Amount, v float64) (s []trimtab.Status) {
		p := &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: sequence, Step: 1, Last: true, Time: time.Now(), Capacity: 8, Lease: 60}
		for _, name := range []string{"a", "b"} {
			p.Actions = append(p.Actions, trimtab.Action{KnobID: trimtab.KnobID{Pool: p.Pool, Host: "h", Workload: name, Resource: "cpu"}, Expect: expect, Set: trimtab.Units(v), Mode: trimtab.Act})
		}
		o := a.Handle(t.Context(), p)
		for _, r := range o.Results {
			s = append(s, r.Status)
		}
		return s
	}
	if s := act(1, trimtab.Unlimited(), 2); s[0] != trimtab.Written || s[1] != trimtab.Written {
		t.Fatalf("statuses %v", s)
	}
	if err := os.Remove(filepath.Join(root, groups[0].Path())); err != nil {
		t.Fatal(err)
	}
	if s := act(2, trimtab.Units(2), 1); s[0] != trimtab.Refused || s[1] != trimtab.Written {
		t.Errorf("statuses %v", s)
	}
	if p := a.Holding().Targets[0].Problem; !strings.Contains(p, "no such file") {
		t.Errorf("problem %q", p)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := kernelQuota(t, root, groups[1].Path()); got != unlimited {
		t.Errorf("the other has %q", got)
	}
}
