package beside

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/actuator/kinds"
)

// newJobWorldV1 is a host of version 1 with so many jobs in the hierarchy of the cpu
// controller, and none of them in that of the freezer.
func newJobWorldV1(t testing.TB, n int) *jobWorld {
	t.Helper()
	top := t.TempDir()
	w := &jobWorld{t: t, root: filepath.Join(top, "cpu"), now: time.Now()}
	groups := []string{"web"}
	for i := range n {
		groups = append(groups, fmt.Sprintf("batch/%d", i))
	}
	err := os.Mkdir(filepath.Join(top, "freezer"), 0o755)
	for _, name := range groups {
		dir := filepath.Join(w.root, name)
		err = errors.Join(err, os.MkdirAll(dir, 0o755))
		for file, text := range map[string]string{"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n", "cgroup.procs": ""} {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	w.open(fmt.Sprintf(jobFile, w.root, t.TempDir(), "act", filepath.Join(w.root, "progress-*")), kinds.All(), machine{})
	return w
}

func TestABestEffortJobWithoutAFreezerGroupIsHeldByItsQuotaAndTheWordsSaySo(t *testing.T) {
	w := newJobWorldV1(t, 1)
	for _, step := range []struct {
		what string
		load float64
	}{{"nothing grows", 0.8}, {"the load is over its limit", 0.99}, {"again", 0.99}} {
		w.pass(1, 99, step.load)
		if got := w.read(0, "cpu.cfs_quota_us"); got != "1000" {
			t.Errorf("%s: its quota is %s us of 100 ms, want the least, 1000", step.what, got)
		}
	}
	c := w.Colocation()
	if c.Last == nil || c.Last.Verb != "SuspendBE" {
		t.Fatalf("%+v", c.Last)
	}
	if j := c.Jobs[0]; j.State != "running" || !strings.Contains(j.Unmet, "cannot be frozen: it is held by its quota alone, 0.01 cores") {
		t.Errorf("%+v", j)
	}
	if len(c.Unmet) != 1 || !strings.Contains(c.Unmet[0].Why, "SuspendBE does not freeze all jobs: 1 of 1") || c.Unmet[0].Do == "" {
		t.Errorf("%+v", c.Unmet)
	}
	w.pass(40, 20, 0.4)
	if got := w.sumV1(1); got < 1 {
		t.Errorf("with much slack it has %v cores: it grows by its quota", got)
	}
	w.pass(1, 99, 0.99)
	c = w.Colocation()
	if got := w.sumV1(1); got > 0.011 || len(c.Last.Changes) == 0 || !strings.Contains(c.Last.Changes[len(c.Last.Changes)-1].Result, "not in force as said: it cannot be frozen") {
		t.Errorf("suspended with %v cores, %+v", got, c.Last)
	}
}

// sumV1 is what the jobs have together by the files of version 1.
func (w *jobWorld) sumV1(n int) (cores float64) {
	for i := range n {
		var quota float64
		if _, err := fmt.Sscan(w.read(i, "cpu.cfs_quota_us"), &quota); err != nil {
			w.t.Fatal(err)
		}
		cores += quota / 100000
	}
	return cores
}

func TestAJobWhoseCPUTimeCannotBeLimitedIsNotStarted(t *testing.T) {
	w := newJobWorld(t, "act", 1)
	if err := os.Remove(filepath.Join(w.root, "batch/0/cpu.max")); err != nil {
		t.Fatal(err)
	}
	w = w.again(t)
	w.pass(40, 20, 0.4)
	if got := w.read(0, "cgroup.freeze"); got != "1" {
		t.Errorf("it runs without a limit: cgroup.freeze %s", got)
	}
	if j := w.Colocation().Jobs[0]; !strings.Contains(j.Unmet, "cannot be limited: it is kept frozen") {
		t.Errorf("%+v", j)
	}
}

// again is the same host with an actuator that never read what was removed.
func (w *jobWorld) again(t testing.TB) *jobWorld {
	t.Helper()
	next := &jobWorld{t: t, root: w.root, now: w.now}
	next.open(fmt.Sprintf(jobFile, w.root, t.TempDir(), "act", filepath.Join(w.root, "progress-*")), kinds.All(), machine{})
	return next
}
