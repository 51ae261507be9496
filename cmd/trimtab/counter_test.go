package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// busyIn puts a busy process into the group of a workload of version 1 and into that of
// the same path which counters go by; the test is skipped where there is no such hierarchy.
func busyIn(t *testing.T, q quotas, name string) {
	t.Helper()
	twin := hostfs.Sibling(filepath.Dir(q.root), "unified")
	if r, err := hostfs.OpenRoot(q.root); err != nil || r.Filesystem() != hostfs.Cgroup1 || twin == "" {
		t.Skip("not both hierarchies, of version 1 and 2, are mounted")
	}
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	top := filepath.Join(twin, filepath.Base(q.root))
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		os.Remove(filepath.Join(top, name))
		os.Remove(top)
	})
	if err := os.MkdirAll(filepath.Join(top, name), 0o755); err != nil {
		t.Skipf("no control group of version 2 can be made: %v", err)
	}
	for _, dir := range []string{filepath.Join(q.root, name), filepath.Join(top, name)} {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPerformanceCountersAreExplainedShownAndExported(t *testing.T) {
	t.Parallel()
	q := kernelQuotas(t)
	busyIn(t, q, "hungry")
	// Waiting is measured where a quota stops the workload. A tenth of a core stops it even if
	// the host is so loaded that a larger quota would never be used up.
	if err := os.WriteFile(filepath.Join(q.root, "hungry", "cpu.cfs_quota_us"), []byte("10000"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := prepare(t, q, "measure: {perf: true}\n")
	p.start()
	p.until("counters", func() error {
		values := map[string]trimtab.Input{}
		e := p.explanation("hungry")
		for _, in := range e.Counters {
			values[in.Name] = in
		}
		clock, delay, cpi := values["task_clock"], values["run_delay"], values["cpi"]
		if clock.Missing != "" || !(clock.Value > 0.01) || clock.Source != "perf" || delay.Missing != "" || delay.Source != "schedstat" {
			return fmt.Errorf("%+v", e.Counters)
		}
		if (cpi.Missing == "") == (cpi.Value == 0) {
			t.Fatalf("cpi: %+v", cpi)
		}
		if p.sum("trimtab_perf_task_clock_cores", "workload", "hungry") <= 0 || p.sum("trimtab_collector_samples_total", "source", "perf", "result", "ok") <= 0 {
			return fmt.Errorf("metrics: %v", p.metrics()["trimtab_perf_task_clock_cores"])
		}
		return p.boardHasMetrics("workload.json", "workload.json / Waiting", "workload.json / What waits", "workload.json / Switches", "workload.json / Task clock")
	})
	if code, out := p.command("explain", "hungry"); code != exitDone || !strings.Contains(out, "counter task_clock") || !strings.Contains(out, "from schedstat") {
		t.Errorf("explain: code %d: %s", code, out)
	}
	if _, page, err := p.get("/workloads/hungry"); err != nil || !strings.Contains(page, "Performance counters") || !strings.Contains(page, "context_switches") {
		t.Errorf("page: %v: %s", err, page)
	}
	if _, parts, err := p.get("/api/v1/pipeline"); err != nil || p.explanation("hungry").Counters[1].Missing != "" && !strings.Contains(parts, "cpi, mpki, rpki: no hardware counters") {
		t.Errorf("pipeline: %v: %s", err, parts)
	}
	if n := p.sum("trimtab_collector_perf_starts_total"); n != 1 {
		t.Errorf("%v starts of the process that counts", n)
	}
}
