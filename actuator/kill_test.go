package actuator_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/leak"
	"github.com/trimtab/trimtab/internal/proctest"
	"github.com/trimtab/trimtab/internal/trial"
)

// TestMain also is the actuator and the watchdog of the tests that kill them.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "watchdog" {
		if err := hostfs.LimitMemory(64 << 20); err != nil {
			os.Exit(2)
		}
		if _, err := actuator.Watchdog(context.Background(), os.Args[2], os.Stdin, reopen); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if dir := os.Getenv("TEST_ACTUATOR"); dir != "" {
		if os.Getenv("TEST_LOCKS") != "" {
			fmt.Fprintln(os.Stderr, compete(dir))
			os.Exit(1)
		}
		fmt.Fprintln(os.Stderr, actuate(dir))
		os.Exit(1)
	}
	// Those that kill wait for leases more than they compute; -parallel says otherwise.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	leak.Main(m)
}

// victims is how many knobs a killed actuator has.
const victims = 3

// victim is the configuration of an actuator that runs in a process.
func victim(dir string) actuator.Config {
	c := actuator.Config{
		Host: "h", Pool: "p", Dir: filepath.Join(dir, "journal"), LockDir: filepath.Join(dir, "locks"), Reopen: reopen, JournalSize: 64 << 10,
		Heartbeat: 20 * time.Millisecond, Watchdog: []string{os.Args[0], "watchdog", filepath.Join(dir, "journal")},
	}
	if os.Getenv("TEST_INSTANCES") != "" {
		c.Finders = []actuator.Finder{(&nursery{dir: dir}).finder()}
		return c
	}
	for i := range victims {
		c.Targets = append(c.Targets, actuator.Target{
			KnobID: trimtab.KnobID{Workload: "w" + strconv.Itoa(i), Resource: "cpu"}, Knob: &fileKnob{Path: filepath.Join(dir, "w"+strconv.Itoa(i))},
			Min: 0.1, Max: 8, Mode: trimtab.Act,
		})
	}
	return c
}

// turnedFile tells that an actuator that does nothing more after its first plan
// has carried that out.
const turnedFile = "turned"

// actuate handles one plan after the other until it is killed, or does
// nothing more after the first when the environment says so.
func actuate(dir string) error {
	ctx := context.Background()
	c := victim(dir)
	a, err := actuator.Open(ctx, c)
	if err != nil {
		return err
	}
	lease, err := strconv.ParseFloat(os.Getenv("TEST_LEASE"), 64)
	if err != nil {
		return err
	}
	for sequence := uint64(1); ; sequence++ {
		p := &trimtab.Plan{
			Pool: "p", Epoch: a.Holding().Epoch + 1, Sequence: sequence, Step: 1, Last: true, Time: time.Now(),
			Capacity: 100, Lease: trimtab.Seconds(lease),
		}
		for i, t := range a.Holding().Targets {
			action := set(i, t.Now, units(3+float64((sequence+uint64(i))%5)))
			action.KnobID = t.KnobID
			p.Actions = append(p.Actions, action)
		}
		o := a.Handle(ctx, p)
		if o.Refused != "" {
			return errors.New(o.Refused)
		}
		for _, r := range o.Results {
			if r.Status != trimtab.Written {
				return fmt.Errorf("%+v", r)
			}
		}
		a.Tick(ctx)
		if os.Getenv("TEST_ONCE") != "" {
			if err := os.WriteFile(filepath.Join(dir, turnedFile), nil, 0o600); err != nil {
				return err
			}
			select {}
		}
	}
}

// fallen makes a host for victims, with baselines that its plans never set.
func fallen(t *testing.T) (h *host, baselines []trimtab.Amount) {
	t.Helper()
	baselines = []trimtab.Amount{units(2), trimtab.Unlimited(), units(1.25)}
	return newHost(t, baselines...), baselines
}

// start runs an actuator process and waits until all knobs are turned, or were:
// a busy machine may keep the test from looking until a short lease is over.
func (h *host) start(lease float64, baselines []trimtab.Amount, env ...string) *exec.Cmd {
	h.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "TEST_ACTUATOR="+h.dir, fmt.Sprint("TEST_LEASE=", lease)), env...)
	cmd.Stderr = os.Stderr // not a pipe: its watchdog has it, too
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.endWith(cmd)
	eventually(h.t, func() error {
		if _, err := os.Stat(filepath.Join(h.dir, turnedFile)); err == nil {
			return nil
		}
		for i, k := range h.knobs {
			if v, err := k.Read(h.t.Context()); err != nil || v == baselines[i] {
				return fmt.Errorf("w%d holds %v, %v", i, v, err)
			}
		}
		return nil
	})
	return cmd
}

// endWith ends an actuator process with the test, and its watchdogs.
func (h *host) endWith(cmd *exec.Cmd) {
	h.endProcesses()
	h.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}

// endProcesses ends the watchdogs with the test, which else wait for the end of the lease.
func (h *host) endProcesses() { h.t.Cleanup(func() { proctest.End(h.t, h.dir) }) }

// eventually waits until f returns nil.
func eventually(t testing.TB, f func() error) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("still: %v", err)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// noneLeft is nil once no process of an actuator's directory is left.
func noneLeft(dir string) func() error { return func() error { return proctest.Left(dir) } }

// R15: actuators are killed, some with their watchdogs, in the middle of what
// they do, and restored as a unit's ExecStopPost would.
func TestAKilledActuatorIsRestoredFromItsJournal(t *testing.T) {
	t.Parallel()
	tr := trial.Start(t, trial.Some(8, 20))
	random := tr.Rand
	for range tr.N {
		h, want := fallen(t)
		cmd := h.start(1000, want)
		<-time.After(time.Duration(random.IntN(10_000)) * time.Microsecond)
		for _, pid := range proctest.With(h.dir) {
			if random.IntN(2) == 0 {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		cmd.Process.Signal(syscall.SIGKILL)
		cmd.Wait()
		if random.IntN(3) == 0 {
			// Somebody else turns a knob before anything is restored.
			i := random.IntN(victims)
			want[i] = units(77)
			h.put(h.knobs[i], want[i])
		}
		began := time.Now()
		if _, err := actuator.Restore(t.Context(), h.config.Dir, reopen); err != nil {
			t.Fatal(err)
		}
		tr.Took(time.Since(began))
		h.want(want...)
		again, err := actuator.Restore(t.Context(), h.config.Dir, reopen)
		if err != nil || len(again.Items) != 0 {
			t.Errorf("restored again: %v, %v", again, err)
		}
		// Its watchdog finds nothing to do and ends.
		eventually(t, noneLeft(h.dir))
	}
}

func TestInstancesOfAKilledActuatorAreRestored(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"the watchdog", "a restore from the journal alone"} {
		h, baselines := fallen(t)
		lease := 1.0
		if by != "the watchdog" {
			lease = 3600
		}
		cmd := h.start(lease, baselines, "TEST_ONCE=1", "TEST_INSTANCES=1")
		// One of them goes with its actuator, one is a new one of the same name.
		gone, again := h.knobs[0], h.knobs[1]
		cmd.Process.Kill()
		cmd.Wait()
		if err := os.Remove(gone.Path); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(again.Path); err != nil {
			t.Fatal(err)
		}
		h.put(again, units(0.75))
		if by != "the watchdog" {
			// Until none is left: each watchdog starts the other again while the lease holds.
			proctest.End(t, h.dir)
			if _, err := actuator.Restore(t.Context(), h.config.Dir, reopen); err != nil {
				t.Fatalf("%s: %v", by, err)
			}
		} else {
			eventually(t, noneLeft(h.dir))
		}
		for i, want := range map[int]trimtab.Amount{1: units(0.75), 2: baselines[2]} {
			if got, err := h.knobs[i].Read(t.Context()); err != nil || got != want {
				t.Errorf("%s: w%d holds %v (%v), want %v", by, i, got, err, want)
			}
		}
		if _, err := os.Stat(gone.Path); err == nil {
			t.Errorf("%s: a group that was gone is there again", by)
		}
	}
}

func TestTheWatchdogRestoresAtTheEndOfTheLease(t *testing.T) {
	t.Parallel()
	h, baselines := fallen(t)
	cmd := h.start(4, baselines, "TEST_ONCE=1")
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	killed := time.Now()
	eventually(t, func() error {
		for i, k := range h.knobs {
			if v, err := k.Read(t.Context()); err != nil || v != baselines[i] {
				return fmt.Errorf("w%d holds %v, %v", i, v, err)
			}
		}
		return nil
	})
	t.Logf("baselines back %v after the kill, the lease was 4 s", time.Since(killed).Round(time.Millisecond))
	eventually(t, noneLeft(h.dir))
}

func TestTheWatchdogRestoresForAnActuatorThatIsStopped(t *testing.T) {
	t.Parallel()
	h, baselines := fallen(t)
	cmd := h.start(3, baselines, "TEST_ONCE=1")
	cmd.Process.Signal(syscall.SIGSTOP)
	eventually(t, func() error {
		for i, k := range h.knobs {
			if v, err := k.Read(t.Context()); err != nil || v != baselines[i] {
				return fmt.Errorf("w%d holds %v, %v", i, v, err)
			}
		}
		return nil
	})
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	eventually(t, noneLeft(h.dir))
}

// A killed process needs CPU time to die, which a busy machine gives it late: its pipe may
// end a second before its locks do. It is not taken for an actuator that came back.
func TestTheWatchdogRestoresForAnActuatorThatDiesSlowly(t *testing.T) {
	t.Parallel()
	h := newHost(t, units(2)).open()
	h.statuses(h.plan(1, 1, set(0, units(2), units(1))))
	h.crash()
	for _, name := range []string{"lock", "actuator"} {
		lock, err := hostfs.AcquireFile(t.Context(), filepath.Join(h.config.Dir, name), 0)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { _ = lock.Close() })
	}
	if r, err := actuator.Watchdog(t.Context(), h.config.Dir, bytes.NewReader(nil), reopen); err != nil || len(r.Items) != 1 {
		t.Errorf("%v, %v", r, err)
	}
	h.want(units(2))
}

// One of the two sees the end of the actuator a second late, as on a busy host: it does not start
// the other one again, which has left by then.
func TestTheWatchdogLeavesTheLeaseToAnActuatorThatCameBack(t *testing.T) {
	t.Parallel()
	h, baselines := fallen(t)
	cmd := h.start(1000, baselines, "TEST_ONCE=1")
	late := h.dogs()[1]
	syscall.Kill(late, syscall.SIGSTOP)
	time.AfterFunc(time.Second, func() { syscall.Kill(late, syscall.SIGCONT) })
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	a, err := actuator.Open(t.Context(), h.config)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close(context.Background())
	p := &trimtab.Plan{Pool: "p", Epoch: 9, Sequence: 1, Step: 1, Last: true, Time: time.Now(), Capacity: 100, Lease: 1000}
	if o := a.Handle(t.Context(), p); o.Refused != "" {
		t.Fatal(o.Refused)
	}
	eventually(t, noneLeft(h.dir))
	for i, k := range h.knobs {
		if v, err := k.Read(t.Context()); err != nil || v == baselines[i] {
			t.Errorf("w%d was restored to %v, %v", i, v, err)
		}
	}
}

// dogs waits until there are two watchdogs, none of them among the old ones.
func (h *host) dogs(old ...int) (pids []int) {
	h.t.Helper()
	eventually(h.t, func() error {
		pids = proctest.With(h.config.Dir)
		if len(pids) != 2 || slices.ContainsFunc(pids, func(pid int) bool { return slices.Contains(old, pid) }) {
			return fmt.Errorf("watchdogs %v, old ones %v", pids, old)
		}
		return nil
	})
	return pids
}

func TestKilledWatchdogsAreReplaced(t *testing.T) {
	t.Parallel()
	h, _ := fallen(t)
	h.config = victim(h.dir)
	h.endProcesses()
	a, err := actuator.Open(t.Context(), h.config)
	if err != nil {
		t.Fatal(err)
	}
	pids := h.dogs()
	for range 3 { // one after the other, and both at once
		syscall.Kill(pids[0], syscall.SIGKILL)
		other := h.dogs(pids[0])
		for _, pid := range other {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		pids = h.dogs(append(other, pids...)...)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, noneLeft(h.dir))
}

func TestRestoreIsRefusedWhileAnActuatorRuns(t *testing.T) {
	t.Parallel()
	h := newHost(t, units(2)).open()
	h.statuses(h.plan(1, 1, set(0, units(2), units(1))))
	if _, err := actuator.Restore(t.Context(), h.config.Dir, reopen); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("error %v, want refused", err)
	}
	h.want(units(1))
}

func TestRestoreWorksOnAFullDisk(t *testing.T) {
	h := newHost(t, units(2), units(3))
	h.config.Dir = t.TempDir()
	if err := unix.Mount("tmpfs", h.config.Dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(h.config.Dir, unix.MNT_DETACH) })
	h.open()
	f, err := os.Create(filepath.Join(h.config.Dir, "fill"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	f.Close()
	for sequence := uint64(1); sequence <= 300; sequence++ { // several times around the journal
		v := units(3 + float64(sequence%2))
		is(t, h.statuses(h.plan(1, sequence, set(0, h.Holding().Targets[0].Now, v))), trimtab.Written)
	}
	h.crash()
	if _, err := actuator.Restore(t.Context(), h.config.Dir, reopen); err != nil {
		t.Fatal(err)
	}
	h.want(units(2), units(3))
}

func TestAFlippedBitAnywhereInTheJournalStillRestores(t *testing.T) {
	h := newHost(t, units(2), trimtab.Unlimited()).open()
	h.statuses(h.plan(1, 1, set(0, units(2), units(1)), set(1, trimtab.Unlimited(), units(1))))
	h.statuses(h.plan(1, 2, set(0, units(1), units(1.5)), set(1, units(1), units(1.5))))
	h.crash()
	random := rand.New(rand.NewPCG(1, 2))
	name := filepath.Join(h.config.Dir, "journal.0")
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	used := bytes.LastIndexFunc(whole, func(r rune) bool { return r != 0 })
	for range 200 {
		b := bytes.Clone(whole)
		b[random.IntN(used)] ^= 1 << random.IntN(8)
		for copy, content := range [][]byte{b, whole} {
			if err := os.WriteFile(filepath.Join(h.config.Dir, fmt.Sprint("journal.", copy)), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, k := range h.knobs {
			h.put(k, units(1.5))
		}
		if _, err := actuator.Restore(t.Context(), h.config.Dir, reopen); err != nil {
			t.Fatal(err)
		}
		h.want(units(2), trimtab.Unlimited())
	}
}

func TestWithBothCopiesCutAnywhereARestoreIsRightOrSaysThatItCannotKnow(t *testing.T) {
	h := newHost(t, units(2)).open()
	h.statuses(h.plan(1, 1, set(0, units(2), units(1))))
	h.crash()
	whole, err := os.ReadFile(filepath.Join(h.config.Dir, "journal.0"))
	if err != nil {
		t.Fatal(err)
	}
	used := bytes.LastIndexFunc(whole, func(r rune) bool { return r != 0 }) + 1
	restored := 0
	for cut := 0; cut <= used; cut++ {
		for copy := range 2 {
			if err := os.WriteFile(filepath.Join(h.config.Dir, fmt.Sprint("journal.", copy)), whole[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		h.put(h.knobs[0], units(1))
		_, err := actuator.Restore(t.Context(), h.config.Dir, reopen)
		switch v, _ := h.knobs[0].Read(t.Context()); {
		case v == units(2) && err == nil:
			restored++
		case v == units(1) && errors.Is(err, hostfs.ErrUnreadable):
		default:
			t.Fatalf("cut at %d: %v, %v", cut, v, err)
		}
	}
	if restored == 0 || restored > 2 {
		t.Errorf("restored at %d cuts of %d", restored, used+1)
	}
}
