package actuator_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/trial"
)

// What two pools share in the tests that kill them: a host of 8 cores, of which each
// has 2 at first.
const (
	sharedCores   = 8.0
	sharedAtFirst = 2.0
)

// compete is an actuator process of one pool of a host that has another: it hands
// itself random plans until it is killed.
func compete(dir string) error {
	ctx := context.Background()
	c := victim(dir)
	c.LockDir = os.Getenv("TEST_LOCKS")
	c.Targets = c.Targets[:1]
	c.Measure = func() (map[string]float64, error) { return map[string]float64{"cpu": sharedCores}, nil }
	a, err := actuator.Open(ctx, c)
	if err != nil {
		return err
	}
	for sequence := uint64(1); ; sequence++ {
		now := a.Holding().Targets[0].Now
		p := &trimtab.Plan{
			Pool: "p", Epoch: a.Holding().Epoch + 1, Sequence: sequence, Step: 1, Last: rand.IntN(2) == 0, Time: time.Now(), Capacity: 100, Lease: 1000,
			Actions: []trimtab.Action{set(0, now, units(0.5+7.4*rand.Float64()))},
		}
		if o := a.Handle(ctx, p); o.Refused != "" {
			return fmt.Errorf("refused: %s", o.Refused)
		}
		a.Tick(ctx)
	}
}

// race is a pool of its own on a host that others have pools on, too.
func race(t *testing.T, locks string) (h *host, start func() *exec.Cmd) {
	h = newHost(t, units(sharedAtFirst))
	return h, func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "TEST_ACTUATOR="+h.dir, "TEST_LOCKS="+locks)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		h.endWith(cmd)
		return cmd
	}
}

// both reads what two pools have at one instant: what the first had before and after
// the second was read.
func both(t *testing.T, a, b *host) (x, y float64) {
	t.Helper()
	for {
		before, err := a.knobs[0].Read(t.Context())
		second, bad := b.knobs[0].Read(t.Context())
		after, worse := a.knobs[0].Read(t.Context())
		if err != nil || bad != nil || worse != nil {
			t.Fatal(err, bad, worse)
		}
		if before == after {
			return before.Value, second.Value
		}
	}
}

func TestTwoPoolsOfAHostStayWithinItWhileTheirActuatorsAreKilled(t *testing.T) {
	t.Parallel()
	tr := trial.Start(t, trial.Some(8, 20))
	locks := filepath.Join(tempDir(t), "locks")
	a, startA := race(t, locks)
	b, startB := race(t, locks)
	running := []*exec.Cmd{startA(), startB()}
	starts := []func() *exec.Cmd{startA, startB}
	most, seen := 0.0, map[string]bool{}
	look := func() {
		t.Helper()
		x, y := both(t, a, b)
		seen[fmt.Sprint(x, " ", y)] = true
		most = max(most, x+y)
		if x+y > sharedCores+0.02 {
			t.Errorf("pools have %v and %v of %v cores", x, y, sharedCores)
		}
	}
	kill := func(i int) {
		if err := running[i].Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = running[i].Wait() // it was killed
	}
	// A process that was not there yet, and one whose baselines are back, claim nothing. So
	// the first may take what the second has, which nobody has to give back.
	eventually(t, func() error {
		if x, y := both(t, a, b); x == sharedAtFirst || y == sharedAtFirst || x+y > sharedCores {
			return fmt.Errorf("pools have %v and %v", x, y)
		}
		return nil
	})
	for range tr.N {
		for until := time.Now().Add(time.Duration(tr.Rand.IntN(150)) * time.Millisecond); time.Now().Before(until); {
			look()
		}
		i := tr.Rand.IntN(2)
		kill(i)
		look()
		running[i] = starts[i]()
		tr.Case()
	}
	eventually(t, func() error {
		look()
		if len(seen) < 20 {
			return fmt.Errorf("%d different states", len(seen))
		}
		return nil
	})
	// One that is dead and restored leaves all to the other.
	kill(0)
	back := func(h *host) {
		if r, err := actuator.Restore(t.Context(), filepath.Join(h.dir, "journal"), reopen); err != nil {
			t.Errorf("%v: %v", r, err)
		}
	}
	back(a)
	eventually(t, func() error {
		if x, y := both(t, a, b); x != sharedAtFirst || y <= sharedCores-sharedAtFirst+0.02 {
			return fmt.Errorf("pools have %v and %v", x, y)
		}
		return nil
	})
	t.Logf("%d states, at most %v of %v cores", len(seen), strconv.FormatFloat(most, 'g', 4, 64), sharedCores)
	kill(1)
	back(b)
	eventually(t, noneLeft(a.dir))
	eventually(t, noneLeft(b.dir))
}
