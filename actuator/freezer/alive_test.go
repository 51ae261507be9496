package freezer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/knobtest"
	"github.com/trimtab/trimtab/internal/hungfs"
)

// startedAgain is the switch with somebody who starts a process whenever 1 is
// written: the contract of knobs goes up and down.
type startedAgain struct {
	*Alive
	start func()
}

func (k startedAgain) Write(ctx context.Context, a trimtab.Amount) error {
	if ctx.Err() == nil && a.Validate() == nil && nearest(a).Value == 1 {
		if some, err := k.populated(); err == nil && !some {
			k.start()
		}
	}
	return k.Alive.Write(ctx, a)
}

func TestARealKillMeetsTheContractOfKnobs(t *testing.T) {
	group, one := realGroup(t), trimtab.Units(1)
	n := 0
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		n++
		c := inner(t, group, fmt.Sprint(n))
		again := func() { start(t, c) }
		again()
		k := openAlive(t, c)
		return knobtest.Fixture{
			Knob: startedAgain{k, again}, Least: 0.3, Most: 1, Unlimited: &one,
			TakeEffect: func() {
				for k.doomed != nil { // until it has ended, which takes a few ms
					if _, err := k.Read(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			},
			Reopen: func(undo []byte) (actuator.Knob, error) {
				k, err := ReopenAlive(undo)
				if err != nil {
					return nil, err
				}
				return startedAgain{k, again}, nil
			},
			Vanish: func() {
				err := openAlive(t, c).Write(t.Context(), trimtab.Units(0))
				if err = errors.Join(err, os.Remove(filepath.Join(c.Root, c.Path))); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

// All processes of the subtree end, also such as start others and ignore signals, and
// none else.
func TestAKillEndsTheWholeGroupAndNothingElse(t *testing.T) {
	c := realGroup(t)
	beside, inside := inner(t, c, "beside"), inner(t, c, "group")
	deeper := inner(t, inside, "deeper")
	var ended []chan struct{}
	for _, g := range []Config{inside, deeper} {
		_, done := start(t, g, "sh", "-c", "trap '' TERM INT HUP; while true; do (sleep 0.01 &) ; sleep 0.01; done")
		ended = append(ended, done)
	}
	pid, _ := start(t, beside)
	k := openAlive(t, inside)
	if v, err := k.Read(t.Context()); err != nil || v != trimtab.Units(1) {
		t.Fatalf("%v, %v", v, err)
	}
	if err := k.Write(t.Context(), trimtab.Units(0)); err != nil {
		t.Fatal(err)
	}
	for _, done := range ended {
		<-done
	}
	if v, err := k.Read(t.Context()); err != nil || v != trimtab.Units(0) {
		t.Errorf("%v, %v", v, err)
	}
	if some, err := openAlive(t, beside).populated(); err != nil || !some {
		t.Errorf("process %d beside it: %v, %v", pid, some, err)
	}
	if v, err := openRunning(t, inside).Read(t.Context()); err != nil || v != trimtab.Units(1) {
		t.Errorf("it stays frozen: %v, %v", v, err)
	}
	if err := k.Write(t.Context(), trimtab.Units(0)); err != nil {
		t.Errorf("a second time: %v", err)
	}
	if err := k.Write(t.Context(), trimtab.Units(1)); !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "none is brought back") {
		t.Errorf("bringing them back: %v", err)
	}
}

func TestAFrozenGroupIsKilledToo(t *testing.T) {
	c := realGroup(t)
	_, ended := start(t, c)
	frozen := openRunning(t, c)
	if err := frozen.Write(t.Context(), trimtab.Units(0)); err != nil {
		t.Fatal(err)
	}
	settled(t, frozen)
	if err := openAlive(t, c).Write(t.Context(), trimtab.Units(0)); err != nil {
		t.Fatal(err)
	}
	<-ended
	if v, err := frozen.Read(t.Context()); err != nil || v != trimtab.Units(0) {
		t.Errorf("it was asked to be frozen, and is %v, %v", v, err)
	}
}

// Both ways are tried where the kernel has both: groups without cgroup.kill are frozen
// and killed one by one.
func TestProcessesAreKilledOneByOneWhereTheKernelCannotKillGroups(t *testing.T) {
	c := realGroup(t)
	var ended []chan struct{}
	for range 20 {
		_, done := start(t, c)
		ended = append(ended, done)
	}
	if err := openAlive(t, c).killEach(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, done := range ended {
		<-done
	}
	if v, err := openRunning(t, c).Read(t.Context()); err != nil || v != trimtab.Units(1) {
		t.Errorf("it stays frozen: %v, %v", v, err)
	}
}

// What a kill did cannot be undone. A stop, a restore from the journal, and the end of
// a lease say so, and none of them fails or tries again.
func TestNothingRestoresWhatWasKilledAndThatIsNoFailure(t *testing.T) {
	c := realGroup(t)
	_, ended := start(t, c)
	a, config, r := planned(t, openAlive(t, c), 0)
	if r.Status != trimtab.Written || r.Found != trimtab.Units(0) {
		t.Fatalf("%+v", r)
	}
	<-ended
	copied := t.TempDir() // as a kill of this process would leave it
	if err := os.CopyFS(copied, os.DirFS(config.Dir)); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		report, err := actuator.Restore(t.Context(), copied, config.Reopen)
		if err != nil || len(report.Items) != 1-i {
			t.Fatalf("%+v, %v", report, err)
		}
		for _, item := range report.Items {
			if item.Status != trimtab.Refused || !strings.Contains(item.Reason, "were killed, and cannot be restored") {
				t.Errorf("%+v", item)
			}
		}
	}
	if err := a.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAGroupWithTrimtabItselfIsNeitherFrozenNorKilled(t *testing.T) {
	c := realGroup(t)
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	home := c.Root
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if f[1] == "freezer" || f[0] == "0" && openRunning(t, c).version() == 2 {
			home = filepath.Join(c.Root, f[2])
		}
	}
	t.Cleanup(func() {
		if err := os.WriteFile(filepath.Join(home, "cgroup.procs"), fmt.Append(nil, os.Getpid()), 0); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(c.Root, c.Path, "cgroup.procs"), fmt.Append(nil, os.Getpid()), 0); err != nil {
		t.Fatal(err)
	}
	for _, k := range []actuator.Knob{openRunning(t, c), openAlive(t, c)} {
		if err := k.Write(t.Context(), trimtab.Units(0)); !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "which is trimtab") {
			t.Errorf("%s: %v", k, err)
		}
	}
}

// A list of numbers in a plain file is nobody's processes.
func TestPlainFilesNameNobodyToKill(t *testing.T) {
	c := files(t, 1, "", "THAWED")
	put(t, c, "cgroup.procs", fmt.Sprint(os.Getpid()))
	k := openAlive(t, c)
	for _, err := range []error{k.Probe(t.Context()), k.Write(t.Context(), trimtab.Units(0))} {
		if !errors.Is(err, trimtab.ErrUnsupported) {
			t.Errorf("error %v", err)
		}
	}
	put(t, c, "cgroup.procs", "0")
	if v, err := k.Read(t.Context()); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("of another PID namespace: %v, %v", v, err)
	}
}

// The process waits for a real file system that does not answer, as one whose disk is
// gone: it is in state D, and no signal ends it.
func TestAKillOfWhatDoesNotEndIsPendingAndTriedAgain(t *testing.T) {
	fs := hungfs.Mount(t)
	defer fs.Release()
	c := realGroup(t)
	_, ended := start(t, c, "stat", filepath.Join(fs.Dir, "x"))
	<-fs.Asked
	k := openAlive(t, c)
	a, _, r := planned(t, k, 0)
	if r.Status != trimtab.Pending || r.Found != trimtab.Units(0) || r.Effective == nil || *r.Effective != trimtab.Units(1) {
		t.Fatalf("%+v", r)
	}
	k.doomed.again = time.Now()
	for range 3 { // once, and then not for a while
		a.Tick(t.Context())
	}
	if k.doomed == nil || k.doomed.wait != 4*firstAgain {
		t.Errorf("%+v: want it tried again once", k.doomed)
	}
	if state := a.Holding().Targets[0]; state.Problem != "" || state.InForce() != trimtab.Units(1) {
		t.Errorf("%+v", state)
	}
	if err := fs.Release(); err != nil {
		t.Fatal(err)
	}
	<-ended
	if v, err := k.Effective(t.Context()); err != nil || v != trimtab.Units(0) || k.doomed != nil {
		t.Errorf("%v, %v", v, err)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWhatIsStartedBesideProcessesThatDoNotEndWasNotKilled(t *testing.T) {
	fs := hungfs.Mount(t)
	defer fs.Release()
	c := realGroup(t)
	start(t, c, "stat", filepath.Join(fs.Dir, "x"))
	<-fs.Asked
	k := openAlive(t, c)
	if err := k.Write(t.Context(), trimtab.Units(0)); err != nil {
		t.Fatal(err)
	}
	if v, err := k.Read(t.Context()); err != nil || v != trimtab.Units(0) {
		t.Errorf("%v, %v", v, err)
	}
	start(t, c)
	if v, err := k.Read(t.Context()); err != nil || v != trimtab.Units(1) {
		t.Errorf("%v, %v", v, err)
	}
}

func TestOneThatDoesNotEndIsWaitedForAndTheOthersAfterItAreNot(t *testing.T) {
	fs := hungfs.Mount(t)
	defer fs.Release()
	root, kind := realGroup(t), Kind()
	var all []*Alive
	for i := range 3 {
		c := inner(t, root, fmt.Sprint(i))
		start(t, c, "stat", filepath.Join(fs.Dir, fmt.Sprint("x", i)))
		<-fs.Asked // now it is in state D
		opened, err := kind.Open(actuator.Location{Root: c.Root, Path: c.Path}, trimtab.Alive)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { opened.Close() })
		all = append(all, opened.(*Alive))
	}
	kill := func(k *Alive) {
		t.Helper()
		if err := k.Write(t.Context(), trimtab.Units(0)); err != nil {
			t.Error(err)
		}
	}
	kill(all[0])
	if all[1].vain.Load() == 0 {
		t.Fatal("the others do not know that it was waited for in vain")
	}
	soon := time.Now().Add(time.Hour).UnixNano() // this test may be slow
	all[0].vain.Store(soon)
	kill(all[1])
	kill(all[2])
	if all[2].vain.Load() != soon {
		t.Error("they were waited for, too")
	}
}
