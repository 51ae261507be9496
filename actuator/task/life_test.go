package task

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/freezer"
	"github.com/trimtab/trimtab/internal/hungfs"
)

func TestATaskThatForksAwayHasNotEndedAndIsKilled(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		h.open()
		fifo, read := h.fifo()
		// Twice forked, in a session of its own, without its parent's files.
		id := h.start(h.sh(strings.ReplaceAll(away, "FIFO", fifo) + "exit 0"))
		away := h.process(read())
		for h.infoOf(id).PID != 0 { // the first process ends
		}
		if i := h.infoOf(id); i.State != Running {
			t.Errorf("%v", i)
		}
		h.runner.known.tasks[id].spec.Limits.Grace = time.Millisecond
		info, err := h.runner.Kill(t.Context(), id, "no longer needed")
		if err != nil || info.Outcome != Killed || info.Reason != "no longer needed" || info.Code != 0 {
			t.Errorf("%+v, %v", info, err)
		}
		h.gone(away)
		h.empty()
	})
}

// A task of root may make groups; they are in its own.
func TestATaskThatMakesGroupsInItsOwnIsKilledWithThem(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		r := h.open()
		fifo, read := h.fifo()
		s := h.sh("")
		inner := filepath.Join(r.tree.main.Path(), r.tree.path(Oversubscribed, leafOf(s.ID)), "inner")
		s.Command[2] = "mkdir " + inner + " && sh -c 'echo $$ >" + inner + "/cgroup.procs; echo $$ >" + fifo + "; sleep 1000; :' & exit 0"
		id := h.start(s)
		inside := h.process(read())
		if info, err := r.Kill(t.Context(), id, ""); err != nil || info.Outcome != Killed {
			t.Errorf("%+v, %v", info, err)
		}
		h.gone(inside)
		h.empty()
	})
}

func TestATaskMayEndByItselfInItsGraceAndIsKilledAfterIt(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		h.open()
		fifo, read := h.fifo()
		s := h.sh(`trap "exit 7" TERM; echo ready >` + fifo + `; while :; do sleep 0.01; done`)
		s.Limits.Grace = time.Minute
		id := h.start(s)
		read()
		if info, err := h.runner.Kill(t.Context(), id, ""); err != nil || info.Outcome != Killed || info.Code != 7 {
			t.Errorf("%+v, %v", info, err)
		}
		s = h.sh(`trap "" TERM INT HUP; echo ready >` + fifo + `; while :; do sleep 0.01; done`)
		s.Limits.Grace = 50 * time.Millisecond
		id = h.start(s)
		read()
		if info, err := h.runner.Kill(t.Context(), id, ""); err != nil || info.Outcome != Killed || info.Signal != "SIGKILL" {
			t.Errorf("%+v, %v", info, err)
		}
		h.empty()
	})
}

// used is how much CPU time the group had, as the kernel prints it.
func (h *host) used(id ID) string {
	h.Helper()
	dir, file := h.config.Root, "cpu.stat"
	if h.version == 1 {
		dir, file = "/sys/fs/cgroup/cpuacct", "cpuacct.usage"
	}
	b, err := os.ReadFile(filepath.Join(dir, h.runner.tree.path(Oversubscribed, leafOf(id)), file))
	if err != nil {
		h.Skip(err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

func TestAFrozenTaskGetsNoCPUTimeUntilItIsThawed(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		r := h.open()
		id := h.start(h.sh("while :; do :; done"))
		for first := h.used(id); h.used(id) == first; {
		}
		if err := r.Freeze(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if i := h.infoOf(id); i.CPU == nil || *i.CPU <= 0 {
			t.Errorf("CPU time %v of %v", i.CPU, i)
		}
		before := h.used(id)
		// Another one works meanwhile.
		if info, _ := h.run(h.sh("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")); !info.Succeeded() {
			t.Errorf("%v", info)
		}
		if after := h.used(id); after != before || h.infoOf(id).State != Frozen {
			t.Errorf("%s, then %s: %v", before, after, h.infoOf(id))
		}
		if err := r.Thaw(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		for h.used(id) == before {
		}
		if err := r.Freeze(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		// It needs not run to be killed.
		if info, err := r.Kill(t.Context(), id, ""); err != nil || info.Outcome != Killed || info.Signal != "SIGKILL" {
			t.Errorf("%+v, %v", info, err)
		}
		if err := r.Freeze(t.Context(), id); !isA(err, trimtab.ErrRefused) {
			t.Errorf("freeze one that ended: %v", err)
		}
	})
}

// freezer freezes and thaws a task as another program would.
func (h *host) freezer(id ID) *freezer.Running {
	h.Helper()
	k, err := freezer.OpenRunning(freezer.Config{Root: h.runner.tree.main.Path(), Path: h.runner.tree.path(Oversubscribed, leafOf(id))})
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = k.Close() })
	return k
}

func TestATaskThatAnotherProgramFrozeIsNotThawed(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		r := h.open()
		id := h.start(h.spec("sleep", "1000"))
		other := h.freezer(id)
		if err := other.Write(t.Context(), trimtab.Units(0)); err != nil {
			t.Fatal(err)
		}
		if err := r.Relabel(t.Context(), id, Regular); !isA(err, trimtab.ErrRefused) {
			t.Errorf("relabelled, it would run: %v", err)
		}
		if err := errors.Join(r.Freeze(t.Context(), id), r.Freeze(t.Context(), id), r.Thaw(t.Context(), id)); err != nil {
			t.Fatal(err)
		}
		if v, err := other.Read(t.Context()); err != nil || v.Value != 0 {
			t.Errorf("%v, %v", v, err)
		}
		if info, err := r.Kill(t.Context(), id, ""); err != nil || info.Outcome != Killed {
			t.Errorf("%+v, %v", info, err)
		}
	})
}

func TestAFrozenTaskThatAnotherProgramThawsRunsUntilItIsFrozenAgain(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		r := h.open()
		id := h.start(h.spec("sleep", "1000"))
		if err := errors.Join(r.Freeze(t.Context(), id), h.freezer(id).Write(t.Context(), trimtab.Units(1))); err != nil {
			t.Fatal(err)
		}
		if i := h.infoOf(id); i.State != Running {
			t.Errorf("%v", i)
		}
		if err := r.Freeze(t.Context(), id); err != nil || h.infoOf(id).State != Frozen {
			t.Errorf("%v, %v", err, h.infoOf(id))
		}
		if err := r.Thaw(t.Context(), id); err != nil || h.infoOf(id).State != Running {
			t.Errorf("%v, %v", err, h.infoOf(id))
		}
	})
}

func TestATaskWhoseLeaseIsNotRenewedIsKilled(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		r := h.open()
		kept := h.start(h.spec("sleep", "1000"))
		let, began := h.spec("sleep", "1000"), time.Now()
		if _, err := r.Start(t.Context(), let, 2*time.Second); err != nil {
			t.Fatal(err)
		}
		// Never shorter than it was: that of kept is. The other's may be over on a busy machine.
		if err := r.Renew(t.Context(), 300*time.Millisecond, kept, let.ID); err != nil && time.Since(began) < 2*time.Second {
			t.Fatal(err)
		}
		if info := h.wait(let.ID); info.Outcome != Killed || !strings.Contains(info.Reason, "lease") {
			t.Errorf("%+v", info)
		}
		if err := r.Renew(t.Context(), time.Minute, let.ID, kept); !isA(err, trimtab.ErrStale) {
			t.Errorf("renew one that ended: %v", err)
		}
		if i := h.infoOf(kept); i.State != Running || i.Lease < 30*time.Second {
			t.Errorf("%v, lease %v", i, i.Lease)
		}
	})
}

// While a group above is frozen, SIGKILL of version 1 does not end a process, as where it
// waits for a device.
func TestATaskThatCannotBeKilledIsReportedAndTriedAgainAndHoldsNobodyUp(t *testing.T) {
	h := newHost(t, 1)
	r := h.open()
	id := h.start(h.spec("sleep", "1000"))
	state := h.runner.tree.path(Oversubscribed, "") + "/freezer.state"
	if err := r.tree.main.Write(state, "FROZEN"); err != nil {
		t.Fatal(err)
	}
	info, err := r.Kill(t.Context(), id, "")
	if err == nil || info.State != Unkillable || info.Problem == "" {
		t.Errorf("%+v, %v", info, err)
	}
	s := h.sh("exit 0")
	s.Class = Regular
	if other, _ := h.run(s); !other.Succeeded() {
		t.Errorf("%v", other)
	}
	if err := r.tree.main.Write(state, "THAWED"); err != nil {
		t.Fatal(err)
	}
	if info := h.wait(id); info.Outcome != Killed || info.Problem != "" {
		t.Errorf("%+v", info)
	}
	h.empty()
}

// On a busy machine a killed process may get no CPU time before the kill has done its part.
// This one waits for a file system.
func TestAFrozenTaskThatIsKilledEndsWhenItCanAndIsNotFrozenAgain(t *testing.T) {
	each(t, func(t *testing.T, h *host) {
		fs := hungfs.Mount(t)
		defer fs.Release()
		r := h.open()
		id := h.start(h.spec("stat", filepath.Join(fs.Dir, "x")))
		<-fs.Asked
		group := r.tree.path(Oversubscribed, leafOf(id))
		pids, err := r.tree.processes(group)
		if err != nil || len(pids) != 1 {
			t.Fatal(pids, err)
		}
		process := h.process(strconv.Itoa(pids[0]))
		file, text := filepath.Join(r.tree.main.Path(), group, "freezer.state"), "FROZEN"
		if h.version == 2 {
			file, text = filepath.Join(r.tree.main.Path(), group, "cgroup.freeze"), "1"
		}
		if err := os.WriteFile(file, []byte(text), 0); err != nil {
			t.Fatal(err)
		}
		if err := r.tree.kill(t.Context(), group); err != nil {
			t.Fatal(err)
		}
		if err := fs.Release(); err != nil {
			t.Fatal(err)
		}
		h.gone(process)
	})
}

func TestWhatCannotBeKilledWhenTheRunnerClosesIsLeftToTheWatchdog(t *testing.T) {
	h := newHost(t, 1)
	r := h.open()
	fifo, read := h.fifo()
	h.start(h.sh("echo $$ >" + fifo + "; sleep 1000; :"))
	process, watchdog := h.process(read()), h.watchdogOf()
	state := filepath.Join(r.tree.main.Path(), r.tree.path(Oversubscribed, ""), "freezer.state")
	if err := os.WriteFile(state, []byte("FROZEN"), 0); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(short(t)); !isA(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(state, []byte("THAWED"), 0); err != nil {
		t.Fatal(err)
	}
	h.gone(process)
	h.gone(watchdog)
	h.empty()
}
