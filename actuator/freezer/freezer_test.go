package freezer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/actuator/knobtest"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// realGroup makes a real group for one test, with its root in the hierarchy of the
// freezer; else it skips, with the proof.
func realGroup(t *testing.T) Config {
	t.Helper()
	kind := Kind()
	root, err := hostfs.CPUHierarchy()
	c := Config{Path: fmt.Sprintf("trimtab-test-%d-%d", os.Getpid(), time.Now().UnixNano()%1e9)}
	var g *cgroup.Group
	if err == nil {
		g, err = cgroup.Create(root, c.Path, "freezer")
	}
	if err == nil {
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			if err := g.Remove(ctx); err != nil {
				t.Error(err)
			}
		})
		var k actuator.Knob
		if k, err = kind.Open(actuator.Location{Root: root, Path: c.Path}, trimtab.Running); err == nil {
			c.Root = k.(*Running).Config().Root
			err = errors.Join(k.Probe(t.Context()), k.MayWrite(t.Context()), k.Close())
		}
	}
	if err != nil {
		if os.Getenv("TRIMTAB_GUEST") != "" {
			t.Fatalf("no writable freezer: %v", err)
		}
		t.Skipf("no writable freezer: %v", err)
	}
	return c
}

func inner(t *testing.T, c Config, name string) Config {
	t.Helper()
	c.Path = filepath.Join(c.Path, name)
	if err := os.Mkdir(filepath.Join(c.Root, c.Path), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(filepath.Join(c.Root, c.Path)) })
	return c
}

// start starts a process in the group, which sleeps, and ends with the test; ended is
// closed when it did.
func start(t *testing.T, c Config, command ...string) (pid int, ended chan struct{}) {
	t.Helper()
	if command == nil {
		command = []string{"sleep", "1000"}
	}
	cmd := exec.Command(command[0], command[1:]...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended = make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		if k, err := OpenRunning(c); err == nil {
			_ = k.freeze(false)
			k.Close()
		}
		_ = cmd.Process.Kill()
		<-ended
	})
	if err := os.WriteFile(filepath.Join(c.Root, c.Path, "cgroup.procs"), fmt.Append(nil, cmd.Process.Pid), 0); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid, ended
}

func openRunning(t *testing.T, c Config) *Running {
	t.Helper()
	k, err := OpenRunning(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

func openAlive(t *testing.T, c Config) *Alive {
	t.Helper()
	k, err := OpenAlive(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

func reopenRunning(undo []byte) (actuator.Knob, error) { return actuator.OrNil(ReopenRunning(undo)) }

// settled waits until what was asked for is in force.
func settled(t *testing.T, k actuator.Knob) {
	t.Helper()
	for {
		asked, err := k.Read(t.Context())
		now, bad := k.Traits().Effective(t.Context())
		if err != nil || bad != nil {
			t.Fatal(err, bad)
		}
		if asked == now {
			return
		}
	}
}

func TestARealFreezerMeetsTheContractOfKnobs(t *testing.T) {
	group, one := realGroup(t), trimtab.Units(1)
	n := 0
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		n++
		c := inner(t, group, fmt.Sprint(n))
		_, ended := start(t, c)
		k := openRunning(t, c)
		return knobtest.Fixture{
			Knob: k, Reopen: reopenRunning, Least: 0.3, Most: 1, Unlimited: &one,
			TakeEffect: func() { settled(t, k) },
			Vanish: func() {
				a := openAlive(t, c)
				if err := a.Write(t.Context(), trimtab.Units(0)); err != nil {
					t.Fatal(err)
				}
				<-ended
				if err := os.Remove(filepath.Join(c.Root, c.Path)); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

// files is a tree of plain files with one group, in the form of version 1 or 2.
func files(t *testing.T, version int, asked string, frozen string) Config {
	t.Helper()
	all := map[string]string{"cgroup.freeze": asked, "cgroup.events": "populated 1\nfrozen " + frozen}
	if version == 1 {
		all = map[string]string{"freezer.state": frozen}
	}
	c := Config{Root: t.TempDir(), Path: "a"}
	all["cgroup.procs"] = ""
	if err := os.Mkdir(filepath.Join(c.Root, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range all {
		put(t, c, name, text)
	}
	return c
}

// put plays the kernel.
func put(t *testing.T, c Config, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.Root, c.Path, name), []byte(text+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestFreezerFilesOfBothVersionsMeetTheContractOfKnobs(t *testing.T) {
	one := trimtab.Units(1)
	for version, asked := range map[int]string{1: "THAWED", 2: "0"} {
		knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
			c := files(t, version, "0", asked)
			k := openRunning(t, c)
			return knobtest.Fixture{
				Knob: k, Reopen: reopenRunning, Least: 0.3, Most: 1, Unlimited: &one,
				Vanish: func() { os.RemoveAll(filepath.Join(c.Root, c.Path)) },
				TakeEffect: func() {
					if version == 2 {
						on, err := k.frozenBySelf()
						if err != nil {
							t.Fatal(err)
						}
						put(t, c, "cgroup.events", map[bool]string{true: "populated 1\nfrozen 1", false: "populated 1\nfrozen 0"}[on])
					}
				},
			}
		})
	}
}

func TestWhatIsNotFrozenYetIsPending(t *testing.T) {
	for _, c := range []Config{files(t, 2, "1", "0"), files(t, 1, "", "FREEZING")} {
		k := openRunning(t, c)
		asked, err := k.Read(t.Context())
		now, bad := k.Effective(t.Context())
		if err != nil || bad != nil || asked != trimtab.Units(0) || now != trimtab.Units(1) {
			t.Errorf("%s: asked for %v, %v is in force, %v, %v", k, asked, now, err, bad)
		}
	}
}

func TestWhoeverAskedToFreezeAsksAgainForWhatIsNotFrozenYet(t *testing.T) {
	c := files(t, 1, "", "THAWED")
	k, other := openRunning(t, c), openRunning(t, c)
	if err := k.Write(t.Context(), trimtab.Units(0)); err != nil {
		t.Fatal(err)
	}
	put(t, c, state1, "FREEZING")
	for i, k := range []*Running{other, k} {
		want := float64(1 - i)
		if now, err := k.Effective(t.Context()); err != nil || now != trimtab.Units(want) {
			t.Errorf("%v is in force, %v; want %v", now, err, want)
		}
	}
	put(t, c, state1, "THAWED")
	if now, err := k.Effective(t.Context()); err != nil || now != trimtab.Units(1) {
		t.Errorf("somebody thawed it, and %v is in force, %v", now, err)
	}
}

// A shell sleeps in vfork until its child has become another program, and of 20 shells
// some always do: version 1 does not freeze those at the first request.
func TestAGroupThatForksWithoutEndIsFrozen(t *testing.T) {
	c := realGroup(t)
	for range 20 {
		start(t, c, "sh", "-c", "while :; do /bin/true; done")
	}
	k := openRunning(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 20 {
		for _, v := range []trimtab.Amount{trimtab.Units(0), trimtab.Units(1)} {
			if err := k.Write(ctx, v); err != nil {
				t.Fatal(err)
			}
			for now := trimtab.Units(-1); now != v; {
				var err error
				if now, err = k.Effective(ctx); err != nil {
					t.Fatalf("round %d, waiting for %v: %v", i, v, err)
				}
			}
		}
	}
}

func TestAFrozenGroupAboveIsToldApartFromOwnState(t *testing.T) {
	c := realGroup(t)
	child := inner(t, c, "child")
	start(t, child)
	above, k := openRunning(t, c), openRunning(t, child)
	if err := above.Write(t.Context(), trimtab.Units(0)); err != nil {
		t.Fatal(err)
	}
	settled(t, above)
	asked, err := k.Read(t.Context())
	now, bad := k.Effective(t.Context())
	if err != nil || bad != nil || asked != trimtab.Units(1) || now != trimtab.Units(0) {
		t.Errorf("asked for %v, %v is in force, %v, %v", asked, now, err, bad)
	}
	if err := above.Write(t.Context(), trimtab.Units(1)); err != nil {
		t.Fatal(err)
	}
	settled(t, k)
}

// plan is one action on the only knob of an actuator, which acts.
func planned(t *testing.T, k actuator.Knob, set float64) (*actuator.Actuator, actuator.Config, trimtab.Result) {
	t.Helper()
	id := trimtab.KnobID{Pool: "p", Host: "h", Workload: "job", Resource: k.Resource()}
	config := actuator.Config{Host: "h", Pool: "p", Dir: t.TempDir(), Reopen: Kind().Reopen,
		Targets: []actuator.Target{{KnobID: trimtab.KnobID{Workload: "job", Resource: k.Resource()}, Knob: k, Max: 1, Mode: trimtab.Act}}}
	a, err := actuator.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(context.Background()) })
	o := a.Handle(t.Context(), &trimtab.Plan{
		Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Last: true, Time: time.Now(), Capacity: 4, Lease: 30, Capacities: map[string]float64{k.Resource(): 4},
		Actions: []trimtab.Action{{KnobID: id, Expect: trimtab.Units(1), Set: trimtab.Units(set), Mode: trimtab.Act}},
	})
	if o.Refused != "" || len(o.Results) != 1 {
		t.Fatalf("outcome %+v", o)
	}
	return a, config, o.Results[0]
}

func TestAPlanFreezesARealGroupAndTheEndThawsIt(t *testing.T) {
	c := realGroup(t)
	start(t, c)
	k := openRunning(t, c)
	a, _, r := planned(t, openRunning(t, c), 0)
	if r.Status != trimtab.Written && r.Status != trimtab.Pending {
		t.Fatalf("%+v", r)
	}
	settled(t, k)
	if v, err := k.Effective(t.Context()); err != nil || v != trimtab.Units(0) {
		t.Errorf("%v, %v", v, err)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	settled(t, k)
	if v, err := k.Effective(t.Context()); err != nil || v != trimtab.Units(1) {
		t.Errorf("after the stop %v, %v", v, err)
	}
}

func TestAFrozenGroupThatIsRemovedIsGoneAndNothingIsLeftToRestore(t *testing.T) {
	c := realGroup(t)
	child := inner(t, c, "child")
	a, _, r := planned(t, openRunning(t, child), 0)
	if r.Status != trimtab.Written && r.Status != trimtab.Pending {
		t.Fatalf("%+v", r)
	}
	if err := os.Remove(filepath.Join(child.Root, child.Path)); err != nil {
		t.Fatal(err)
	}
	a.Tick(t.Context())
	if p := a.Holding().Targets[0].Problem; !strings.Contains(p, "no such file") {
		t.Errorf("problem %q", p)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestStatesThatAreNoneAndForeignUnitsAreErrors(t *testing.T) {
	for _, c := range []Config{files(t, 2, "maybe", "1"), files(t, 1, "", "COLD")} {
		if v, err := openRunning(t, c).Read(t.Context()); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%v, %v, want invalid", v, err)
		}
	}
	c := files(t, 2, "0", "0")
	put(t, c, "cgroup.events", "populated 1")
	if v, err := openRunning(t, c).Effective(t.Context()); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("%v, %v, want invalid", v, err)
	}
	if err := errors.Join(os.Rename(filepath.Join(c.Root, "a"), filepath.Join(c.Root, "x.service")), os.Mkdir(filepath.Join(c.Root, "init.scope"), 0o755)); err != nil {
		t.Fatal(err)
	}
	c.Path = "x.service"
	for _, err := range []error{openRunning(t, c).Write(t.Context(), trimtab.Units(0)), openAlive(t, c).Write(t.Context(), trimtab.Units(0))} {
		if !errors.Is(err, trimtab.ErrRefused) {
			t.Errorf("%v, want refused", err)
		}
	}
	for _, path := range []string{"", "..", "/a", "../x", "a/../.."} {
		if _, err := OpenRunning(Config{Root: c.Root, Path: path}); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%q: %v", path, err)
		}
	}
}
