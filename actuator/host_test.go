package actuator_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// pools makes one host for each row of values: pools of their own on one machine of
// so many cores, each with its knobs, its journal and its clock.
func pools(t testing.TB, cores float64, rows ...[]trimtab.Amount) []*host {
	t.Helper()
	all := make([]*host, len(rows))
	for i, values := range rows {
		h := newHost(t, values...)
		if i > 0 {
			h.config.LockDir = all[0].config.LockDir
		}
		h.config.Measure = func() (map[string]float64, error) { return map[string]float64{"cpu": cores}, nil }
		all[i] = h
	}
	return all
}

func row(values ...float64) (all []trimtab.Amount) {
	for _, v := range values {
		all = append(all, units(v))
	}
	return all
}

// tick lets a second go by for all.
func tick(all ...*host) {
	for _, h := range all {
		h.pass(time.Second)
		h.Tick(h.t.Context())
	}
}

// alone lets time go by until no other pool claims the host: on a busy machine the journals
// of the dead are read later than a tick waits.
func alone(h *host) {
	h.t.Helper()
	tick(h)
	for deadline := hostfs.BootTime() + time.Minute; h.Holding().Divided; tick(h) {
		if hostfs.BootTime() > deadline {
			h.t.Fatalf("another pool claims the host still: %+v", h.Holding())
		}
	}
}

func (h *host) capacity() float64 { return h.Holding().Capacity["cpu"] }

// reason handles a plan of one action and returns what became of it.
func (h *host) reason(p *trimtab.Plan) (trimtab.Status, string) {
	h.t.Helper()
	o := h.Handle(h.t.Context(), p)
	if o.Refused != "" || len(o.Results) != 1 {
		h.t.Fatalf("outcome %+v", o)
	}
	return o.Results[0].Status, o.Results[0].Reason
}

func TestARiseThatAnotherPoolLeavesNoRoomForIsRefusedAndNobodyIsLowered(t *testing.T) {
	all := pools(t, 8, row(4), row(3))
	a, b := all[0].open(), all[1].open()
	tick(a, b)
	status, why := a.reason(a.plan(1, 1, set(0, units(4), units(6))))
	if status != trimtab.Refused || !strings.Contains(why, "other pools of this host claim the rest") {
		t.Errorf("%s: %s", status, why)
	}
	a.want(units(4))
	b.want(units(3))
	is(t, a.statuses(a.plan(1, 2, set(0, units(4), units(5)))), trimtab.Written)
	is(t, b.statuses(b.plan(1, 1, set(0, units(3), units(3.5)))), trimtab.Refused)
	// Nor does a pool whose knobs alone are more than the host lower another.
	c := pools(t, 8, row(8))[0]
	c.config.LockDir = a.config.LockDir
	c.open()
	tick(a, b, c)
	if a.capacity() != 5 || b.capacity() != 3 || c.capacity() != 8 {
		t.Errorf("capacities %v, %v, %v", a.capacity(), b.capacity(), c.capacity())
	}
	is(t, a.statuses(a.plan(1, 3, set(0, units(5), units(4)))), trimtab.Written)
	tick(a)
	is(t, a.statuses(a.plan(1, 4, set(0, units(4), units(5)))), trimtab.Refused)
}

func TestAPoolAloneOnItsHostHasWhatIsDeclared(t *testing.T) {
	h := pools(t, 2, row(2))[0].open()
	tick(h)
	is(t, h.statuses(h.plan(1, 1, set(0, units(2), units(6)))), trimtab.Written)
	if said := h.Holding(); said.Divided || said.Capacity["cpu"] != 2 {
		t.Errorf("holding %+v", said)
	}
	// One that only recommends claims nothing.
	other := pools(t, 2, row(1))[0]
	other.config.LockDir = h.config.LockDir
	other.config.Targets[0].Mode = trimtab.Recommend
	other.open()
	tick(h, other)
	is(t, h.statuses(h.plan(1, 2, set(0, units(6), units(7)))), trimtab.Written)
	if said := other.Holding(); !said.Divided || said.Capacity["cpu"] != 1 {
		t.Errorf("what the other is left: %+v", said)
	}
}

func TestTheHoldingSaysWhatOtherPoolsLeave(t *testing.T) {
	all := pools(t, 8, row(4), row(1))
	a, b := all[0].open(), all[1].open()
	tick(a, b)
	for _, h := range all {
		if !h.Holding().Divided {
			t.Error("the host is divided, and the holding does not say so")
		}
	}
	if a.capacity() != 7 || b.capacity() != 4 {
		t.Errorf("capacities %v, %v", a.capacity(), b.capacity())
	}
	// What A frees is B's only once it does not come back when A's lease ends.
	is(t, a.statuses(a.plan(1, 1, set(0, units(4), units(1)))), trimtab.Written)
	tick(a, b)
	if b.capacity() != 4 {
		t.Errorf("B may have %v of what A's baseline needs", b.capacity())
	}
	is(t, b.statuses(b.plan(1, 1, set(0, units(1), units(4.5)))), trimtab.Refused)
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	tick(b)
	if said := b.Holding(); said.Divided || b.capacity() != 8 {
		t.Errorf("A has gone, and B is told %+v", said)
	}
}

func TestWhatAKilledPoolMayHaveCountsUntilItIsRestored(t *testing.T) {
	all := pools(t, 8, row(4), row(1))
	a, b := all[0].open(), all[1].open()
	is(t, a.statuses(a.plan(1, 1, set(0, units(4), units(6)))), trimtab.Written)
	tick(b)
	a.crash()
	tick(b)
	is(t, b.statuses(b.plan(1, 1, set(0, units(1), units(3)))), trimtab.Refused)
	if b.capacity() != 2 {
		t.Errorf("capacity %v", b.capacity())
	}
	// A restart takes the claim over, and a restore ends it.
	a.open()
	tick(a, b)
	is(t, b.statuses(b.plan(1, 2, set(0, units(1), units(3)))), trimtab.Refused)
	a.crash()
	if _, err := actuator.Restore(t.Context(), a.config.Dir, reopen); err != nil {
		t.Fatal(err)
	}
	a.want(units(4))
	alone(b)
	is(t, b.statuses(b.plan(1, 3, set(0, units(1), units(8)))), trimtab.Written)
}

// tear leaves a copy of the journal as a kill in the middle of a write does.
func (h *host) tear(i int) {
	h.t.Helper()
	f, err := os.OpenFile(filepath.Join(h.config.Dir, fmt.Sprint("journal.", i)), os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt([]byte("half of a record"), 8)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		h.t.Fatal(err)
	}
	if _, damage, err := hostfs.ReadJournal(h.config.Dir); err != nil || damage.Places == 0 {
		h.t.Fatalf("damage %+v, %v", damage, err)
	}
}

func TestARestoreEndsTheClaimOfAPoolThatWasKilledInTheMiddleOfAWrite(t *testing.T) {
	all := pools(t, 8, row(4), row(1))
	a, b := all[0].open(), all[1].open()
	is(t, a.statuses(a.plan(1, 1, set(0, units(4), units(6)))), trimtab.Written)
	a.crash().tear(0)
	if _, err := actuator.Restore(t.Context(), a.config.Dir, reopen); err != nil {
		t.Fatal(err)
	}
	a.want(units(4))
	alone(b)
	is(t, b.statuses(b.plan(1, 1, set(0, units(1), units(8)))), trimtab.Written)
}

// The last write told that nothing is left to restore, so that nobody has a reason to open
// the journal again.
func TestTheClaimOfAPoolThatWasKilledInTheMiddleOfAWriteAndHasNothingToRestoreIsOver(t *testing.T) {
	for i := range 2 {
		all := pools(t, 8, row(4), row(1))
		a, b := all[0].open(), all[1].open()
		is(t, a.statuses(a.plan(1, 1, set(0, units(4), units(6)))), trimtab.Written)
		a.pass(time.Minute)
		tick(a) // the lease is over
		a.want(units(4))
		a.crash().tear(i)
		if r, err := actuator.Restore(t.Context(), a.config.Dir, reopen); err != nil || len(r.Items) > 0 {
			t.Errorf("restored %v, %v", r, err)
		}
		alone(b)
		is(t, b.statuses(b.plan(1, 1, set(0, units(1), units(8)))), trimtab.Written)
	}
}

func TestWhatAnUnfinishedPlanFreedIsNotGivenToAnotherPool(t *testing.T) {
	all := pools(t, 8, row(3, 1), row(1))
	a, b := all[0].open(), all[1].open()
	tick(a, b)
	is(t, a.statuses(a.plan(1, 1, set(1, units(1), units(4)))), trimtab.Written) // 7 of 8
	shrink := a.plan(1, 2, set(1, units(4), units(1)))
	shrink.Last = false
	is(t, a.statuses(shrink), trimtab.Written)
	tick(a, b)
	is(t, b.statuses(b.plan(1, 1, set(0, units(1), units(3)))), trimtab.Refused)
	grow := a.plan(1, 2, set(0, units(3), units(6)))
	grow.Step = 2
	is(t, a.statuses(grow), trimtab.Written)
}

func TestAPlanThatNeverGoesOnKeepsNothingForEver(t *testing.T) {
	all := pools(t, 8, row(3), row(1))
	all[0].config.Shared = true // else it gives back to itself
	a, b := all[0].open(), all[1].open()
	is(t, a.statuses(a.plan(1, 1, set(0, units(3), units(7)))), trimtab.Written)
	shrink := a.plan(1, 2, set(0, units(7), units(3)))
	shrink.Last = false
	is(t, a.statuses(shrink), trimtab.Written)
	tick(a, b)
	is(t, b.statuses(b.plan(1, 1, set(0, units(1), units(2)))), trimtab.Refused)
	for range 10 {
		tick(a, b)
	}
	is(t, b.statuses(b.plan(1, 2, set(0, units(1), units(2)))), trimtab.Written)
}

func TestPoolsInGroupsThatAreApartDoNotShare(t *testing.T) {
	all := pools(t, 2, row(2), row(2))
	for i, root := range []string{"/sys/fs/cgroup/a", "/sys/fs/cgroup/b"} {
		all[i].config.Roots = map[string]string{"cpu": root}
	}
	a, b := all[0].open(), all[1].open()
	tick(a, b)
	is(t, a.statuses(a.plan(1, 1, set(0, units(2), units(4)))), trimtab.Written)
	if b.Holding().Divided {
		t.Error("divided")
	}
}

// claimFile is the only claim there is.
func (h *host) claimFile() string {
	h.t.Helper()
	names, err := filepath.Glob(filepath.Join(h.config.LockDir, "claims", "*.claim"))
	if err != nil || len(names) != 1 {
		h.t.Fatalf("claims %v, %v", names, err)
	}
	return names[0]
}

func TestADamagedClaimOfTheDeadIsSetAsideAndOneOfTheLivingIsWrittenAgain(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"garbage": func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("x", 5000)), 0o600) },
		"huge": func(path string) error {
			return os.Truncate(path, 1<<40)
		},
		"a bit": func(path string) error {
			b, err := os.ReadFile(path)
			if err == nil {
				b[30] ^= 1
				err = os.WriteFile(path, b, 0o600)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := pools(t, 8, row(4), row(1))
			a, b := all[0].open(), all[1]
			if err := damage(a.claimFile()); err != nil {
				t.Fatal(err)
			}
			b.open()
			// It lives: nobody knows what it has, so nothing is raised, until it says it again.
			status, why := b.reason(b.plan(1, 1, set(0, units(1), units(2))))
			if status != trimtab.Refused || !strings.Contains(why, "cannot be told") {
				t.Errorf("%s: %s", status, why)
			}
			is(t, b.statuses(b.plan(1, 2, set(0, units(1), units(0.5)))), trimtab.Written)
			tick(a, b)
			is(t, b.statuses(b.plan(1, 3, set(0, units(0.5), units(5)))), trimtab.Refused)
			is(t, b.statuses(b.plan(1, 4, set(0, units(0.5), units(2)))), trimtab.Written)
			// It is dead: the claim is lost, and said to be.
			path := ""
			for _, name := range claimsIn(t, b) {
				if text, err := os.ReadFile(name); err == nil && strings.Contains(string(text), filepath.Base(a.dir)) {
					path = name
				}
			}
			a.crash()
			if err := damage(path); err != nil {
				t.Fatal(err)
			}
			tick(b)
			is(t, b.statuses(b.plan(1, 5, set(0, units(2), units(8)))), trimtab.Written)
			if _, err := os.Stat(path + ".damaged"); err != nil {
				t.Error(err)
			}
			a.want(units(4))
		})
	}
}

func claimsIn(t *testing.T, h *host) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(h.config.LockDir, "claims", "*.claim"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestAStoppedProcessThatHoldsTheClaimsStopsRisesAndNothingElse(t *testing.T) {
	all := pools(t, 8, row(4), row(1))
	a, b := all[0].open(), all[1].open()
	tick(a, b)
	path, err := exec.LookPath("flock")
	if err != nil {
		t.Skip("no flock")
	}
	// With -o the command does not inherit the lock: flock itself holds it.
	stopped := exec.Command(path, filepath.Join(b.config.LockDir, "claims", "lock"), "-c", "kill -STOP $PPID; exec sleep 600")
	stopped.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := stopped.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-stopped.Process.Pid, syscall.SIGKILL); _ = stopped.Wait() })
	for deadline := hostfs.BootTime() + time.Minute; !hostfs.Locked(t.Context(), filepath.Join(b.config.LockDir, "claims", "lock")); {
		if hostfs.BootTime() > deadline {
			t.Fatal("nobody holds the claims")
		}
	}
	status, why := b.reason(b.plan(1, 1, set(0, units(1), units(2))))
	if status != trimtab.Refused || !strings.Contains(why, "another process holds it") {
		t.Errorf("%s: %s", status, why)
	}
	is(t, b.statuses(b.plan(1, 2, set(0, units(1), units(0.5)))), trimtab.Written)
	tick(b)
	b.pass(time.Minute)
	b.Tick(t.Context()) // the lease ended
	b.want(units(1))
	for range 5 {
		tick(b)
	}
	// Who is lowered could not be raised again: the planner is to leave it as it is.
	if why := b.problem(0); !strings.Contains(why, "claims of other pools on this host") {
		t.Errorf("the problem of the knob is %q", why)
	}
	_ = syscall.Kill(-stopped.Process.Pid, syscall.SIGKILL)
	for deadline := hostfs.BootTime() + time.Minute; b.problem(0) != ""; tick(b) {
		if hostfs.BootTime() > deadline {
			t.Fatalf("it is over, and the problem still %q", b.problem(0))
		}
	}
}

func TestClaimsFromBeforeABootCountForNothing(t *testing.T) {
	all := pools(t, 8, row(4), row(1))
	a, b := all[0].open(), all[1]
	a.crash()
	b.bootID = "boot-2"
	b.open()
	is(t, b.statuses(b.plan(1, 1, set(0, units(1), units(8)))), trimtab.Written)
}

func TestAClaimThatSomebodyRemovedIsMadeAgain(t *testing.T) {
	all := pools(t, 8, row(4), row(1))
	a, b := all[0].open(), all[1].open()
	if err := os.RemoveAll(filepath.Join(a.config.LockDir, "claims")); err != nil {
		t.Fatal(err)
	}
	tick(a, b)
	is(t, b.statuses(b.plan(1, 1, set(0, units(1), units(5)))), trimtab.Refused)
	is(t, b.statuses(b.plan(1, 2, set(0, units(1), units(4)))), trimtab.Written)
}

func TestAStopThatLeavesTheAllocationLeavesTheClaim(t *testing.T) {
	all := pools(t, 8, row(4), row(1))
	all[0].config.KeepOnStop = true
	a, b := all[0].open(), all[1].open()
	is(t, a.statuses(a.plan(1, 1, set(0, units(4), units(6)))), trimtab.Written)
	if err := a.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	tick(b)
	is(t, b.statuses(b.plan(1, 1, set(0, units(1), units(3)))), trimtab.Refused)
	is(t, b.statuses(b.plan(1, 2, set(0, units(1), units(2)))), trimtab.Written)
}

func TestTheClaimOfTheDeadIsOverOnceItsStorageAndWhatItTurnedAreGone(t *testing.T) {
	all := pools(t, 8, row(4), row(1))
	a, b := all[0], all[1]
	storage := filepath.Join(t.TempDir(), "storage")
	a.config.Dir = filepath.Join(storage, "actuator")
	b.open()
	a.open()
	is(t, a.statuses(a.plan(1, 1, set(0, units(4), units(6)))), trimtab.Written)
	a.crash()
	if err := os.RemoveAll(storage); err != nil {
		t.Fatal(err)
	}
	tick(b)
	if b.capacity() != 2 {
		t.Errorf("capacity %v: what it set is still in force, and another container may restore it", b.capacity())
	}
	if err := os.Remove(a.knobs[0].Path); err != nil {
		t.Fatal(err)
	}
	for range 31 {
		tick(b)
	}
	alone(b)
	if said := b.Holding(); said.Divided || said.Capacity["cpu"] != 8 {
		t.Errorf("the dead one still claims: %+v", said)
	}
	is(t, b.statuses(b.plan(1, 1, set(0, units(1), units(8)))), trimtab.Written)
}

func TestAClaimIsOverOnceAnotherHasTakenOverAllThatItWasFor(t *testing.T) {
	a := pools(t, 8, row(4, 2))[0].open()
	a.statuses(a.plan(1, 1, set(0, units(4), units(1)), set(1, units(2), units(1))))
	a.crash()
	b := a.beside().open() // and nobody restores from the journal of the dead one
	alone(b)
	if said := b.Holding(); said.Divided {
		t.Errorf("what it has itself is claimed by the dead one: %+v", said)
	}
	is(t, b.statuses(b.plan(1, 1, set(0, units(4), units(6)))), trimtab.Written)
}

func TestAKnobThatIsNotThereIsNotClaimed(t *testing.T) {
	all := pools(t, 8, row(4, 1), row(1))
	a, b := all[0], all[1].open()
	if err := os.Remove(a.knobs[0].Path); err != nil {
		t.Fatal(err)
	}
	a.open()
	tick(b)
	if b.capacity() != 7 {
		t.Errorf("capacity %v, want what the other's one knob leaves", b.capacity())
	}
}
