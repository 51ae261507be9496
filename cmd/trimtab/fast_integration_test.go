//go:build integration

package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab/internal/hostfs"
)

// fastPanels are those of the fast loop, which have data where the section fast is on.
func fastPanels() []string {
	return []string{"workload.json / Between rounds", "workload.json / Borrowed and lent", "workload.json / Fast loop", "workload.json / Groups of the fast loop"}
}

// belowOne is a program whose workloads are real groups, and the group above them.
func belowOne(t *testing.T) (p *program, above string) {
	t.Helper()
	q := kernelQuotas(t)
	p, above = prepare(t, q, ""), filepath.Base(q.root)
	p.text = strings.Replace(p.text, fmt.Sprintf("cgroup_root: %q", q.root), fmt.Sprintf("cgroup_root: %q, lock_dir: %q", filepath.Dir(q.root), filepath.Join(p.dir, "locks")), 1)
	for _, name := range []string{"hungry", "modest"} {
		p.text = strings.Replace(p.text, "cgroup: "+name, "cgroup: "+above+"/"+name, 1)
	}
	// What else this machine does must not keep its processes from using what they have.
	if err := os.WriteFile(filepath.Join(q.root, "cpu.shares"), []byte("262144"), 0o644); err != nil {
		t.Skipf("no shares of version 1: %v", err)
	}
	return p, above
}

// fastProgram is a program whose agent moves the quotas of real groups, under the group
// above them.
func fastProgram(t *testing.T) *program {
	t.Helper()
	p, above := belowOne(t)
	p.text += fmt.Sprintf("fast: {mode: act, parent: %q}\n", above)
	return p
}

// burn runs a script of a shell in the group of a workload.
func (p *program) burn(name, script string) {
	p.Helper()
	c := exec.Command("sh", "-c", script)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what it starts ends with it
	if err := c.Start(); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL); _ = c.Wait() })
	dirs := []string{filepath.Join(p.q.root, name)}
	if twin := hostfs.Accounting(filepath.Dir(p.q.root)); twin != "" {
		dirs = append(dirs, filepath.Join(twin, filepath.Base(p.q.root), name))
	}
	for _, dir := range dirs {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(c.Process.Pid)), 0o644); err != nil {
			p.Fatal(err)
		}
	}
}

func TestTheFastLoopMovesRealGroupsBetweenRoundsAndItsPanelsHaveTheirMetrics(t *testing.T) {
	t.Parallel()
	p := fastProgram(t)
	// At times both want more than there is: somebody lacks room, which asks for a round. At
	// others one has some to lend: two that never have lend nothing.
	p.burn("hungry", "while :; do :; done")
	p.burn("modest", "while :; do sleep 1; n=0; while [ $n -lt 400000 ]; do n=$((n+1)); done; done")
	p.start()
	p.serve()
	var low, high = math.Inf(1), 0.0
	p.until("a quota that moves more often than rounds", func() error {
		h, m := p.limits()
		low, high = min(low, h), max(high, h)
		if n := p.sum("trimtab_fast_writes_total"); n < 5 {
			return fmt.Errorf("%v writes; hungry %v to %v, modest %v", n, low, high, m)
		}
		return nil
	})
	p.until("a round that the loop asks for", func() error {
		if n := p.sum("trimtab_fast_asks_total"); n == 0 {
			return fmt.Errorf("borrowed %v, stalled %v", p.sum("trimtab_fast_borrowed_core_seconds_total"), p.sum("trimtab_fast_stalled_seconds_total"))
		}
		return nil
	})
	p.signal(syscall.SIGSTOP)
	time.Sleep(time.Second)
	p.signal(syscall.SIGCONT)
	p.until("a tick that came late, and all metrics of the boards", func() error {
		if n := p.sum("trimtab_fast_late_total"); n == 0 {
			return fmt.Errorf("no tick came late though the process was stopped for a second")
		}
		return p.boardHasMetrics("workload.json", fastPanels()...)
	})
	if code, out := p.command("explain", "hungry"); code != exitDone || !strings.Contains(out, "between rounds") || !strings.Contains(out, "rests at") {
		t.Errorf("explain: %d: %s", code, out)
	}
	p.signal(syscall.SIGSTOP)
	p.until("baselines that the watchdog puts back after the lease of a process that stands still", func() error {
		b, err := os.ReadFile(filepath.Join(p.q.root, "cpu.cfs_quota_us"))
		if err != nil || strings.TrimSpace(string(b)) != "-1" {
			return fmt.Errorf("the group above has %s", b)
		}
		return p.restored()
	})
	p.signal(syscall.SIGCONT)
	p.stop()
	if err := p.restored(); err != nil {
		t.Errorf("after the end: %v", err)
	}
}
