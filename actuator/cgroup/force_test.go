package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Found under a scheduler of sched_ext: cpu.max read back, and a group with a quota of 0.2
// cores used 0.98 (kernel/sched/ext.c hands cpu.max to the scheduler, which may leave it
// alone; nr_periods stays where it is). The files here say so.
func TestAQuotaThatReadsBackAndDoesNothingIsNamed(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "g")
	stat := func(used float64, periods int) {
		text := fmt.Sprintf("usage_usec %d\nuser_usec 0\nsystem_usec 0\nnr_periods %d\nnr_throttled 0\nthrottled_usec 0\n", int(used*1e6), periods)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "cpu.max"), []byte("20000 100000\n"), 0o600),
			os.WriteFile(filepath.Join(dir, "cpu.stat"), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	stat(0, 0)
	k, err := Open(Config{Root: root, Path: "g"})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	q, now := hostfs.Quota{Micros: 20_000, Period: 100_000}, time.Hour
	look := func(used float64, periods int, want bool) {
		t.Helper()
		now += forceEvery
		stat(used, periods)
		k.watch(q, now)
		if err := k.InForce(); (err != nil) != want {
			t.Fatalf("%v s of CPU time, %d periods: %v", used, periods, err)
		}
	}
	look(0, 0, false)
	look(9.8, 0, false) // the quota may have been another meanwhile
	look(19.6, 0, true)
	if err := k.InForce(); !errors.Is(err, trimtab.ErrUnsupported) || !strings.Contains(err.Error(), "used 0.98 cores at 0.2") {
		t.Errorf("%v", err)
	}
	look(19.6, 0, true)    // it is idle: nothing new is known
	look(21.6, 100, false) // the kernel's own scheduler is back
	look(23.6, 100, false) // idle until shortly before: no more than its quota
	look(33.4, 101, false)
	if v, err := k.Read(t.Context()); err != nil || v != trimtab.Units(0.2) {
		t.Errorf("it reads %v, %v: it can be restored all the same", v, err)
	}
}

func TestTheSchedulerOfSchedExtIsNamed(t *testing.T) {
	dir := t.TempDir()
	if got := scheduledBy(dir); !strings.Contains(got, "real-time") {
		t.Errorf("%q", got)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "root"), 0o755), os.WriteFile(filepath.Join(dir, "state"), []byte("enabled\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "root", "ops"), []byte("scx_simple\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if got := scheduledBy(dir); !strings.Contains(got, "the scheduler scx_simple of sched_ext") {
		t.Errorf("%q", got)
	}
}
