//go:build integration

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/site"
)

// memoryGroup is a real group of version 1 with a memory limit; it skips where none can be made.
func memoryGroup(t *testing.T, limit int) (root, dir string) {
	t.Helper()
	cpu, err := hostfs.CPUHierarchy()
	twin := ""
	if err == nil {
		twin, err = hostfs.Sibling(cpu, "memory"), cgroup.Writable(cpu)
	}
	if err != nil || twin == "" {
		t.Skipf("no writable hierarchies of version 1: %v", err)
	}
	top := fmt.Sprintf("trimtab-test-%d", os.Getpid())
	for _, d := range []string{filepath.Join(cpu, top), filepath.Join(twin, top), filepath.Join(cpu, top, "growing"), filepath.Join(twin, top, "growing")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { _ = os.Remove(d) })
	}
	dir = filepath.Join(twin, top, "growing")
	for file, text := range map[string]string{filepath.Join(dir, "memory.limit_in_bytes"): strconv.Itoa(limit), filepath.Join(cpu, top, "growing", "cpu.cfs_quota_us"): "50000"} {
		if err := os.WriteFile(file, []byte(text), 0); err != nil {
			t.Skip(err)
		}
	}
	return filepath.Join(cpu, top), dir
}

func bytesIn(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A real process grows to its limit; the limit rises before the kernel kills it, and the old limit is
// back at the end.
func TestAMemoryLimitRisesBeforeTheKernelKills(t *testing.T) {
	const mib = 1 << 20
	root, dir := memoryGroup(t, 100*mib)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cfg, err := config.Parse("memory.yaml", fmt.Appendf(nil, `
pool: {cpu: 1}
round: 5s
lease: 1m
analyzer: {report_interval: 500ms, partitions: 1}
actuator: {cgroup_root: %q}
storage: {path: %q}
web: {listen_address: "127.0.0.1:0"}
otlp: {grpc: "127.0.0.1:0", http: "off"}
jaeger: {grpc: "off"}
workloads:
  - {name: growing, slo: {latency: 100ms, fraction: 0.95}, knob: {cgroup: growing, cpu: {min: 0.05, max: 0.9}, memory: {max: 400MiB}}, mode: act}
`, root, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	s, err := site.Open(ctx, cfg, site.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	defer func() {
		if !closed {
			_ = s.Close()
		}
	}()
	// tail keeps all that has no end of a line.
	grows := exec.CommandContext(ctx, "/bin/sh", "-c", "echo $$ > "+dir+"/cgroup.procs && (head -c 60M /dev/zero; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do sleep 0.5; head -c 4M /dev/zero; done; sleep 60) | tail")
	if err := grows.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- grows.Wait() }()
	load := newSender(t, s.OTLPAddress(), quotas{root, func(string) float64 { return 1 }})
	load.need = map[string]float64{"growing": 0.2}
	usage := 0
	for usage < 115*mib {
		select {
		case err := <-ended:
			t.Fatalf("the process ended at %d MiB of %d: %v: %s", usage/mib, bytesIn(t, filepath.Join(dir, "memory.limit_in_bytes"))/mib, err, statusOf(t, s))
		case <-ctx.Done():
			t.Fatalf("it uses %d MiB of %d: %s", usage/mib, bytesIn(t, filepath.Join(dir, "memory.limit_in_bytes"))/mib, statusOf(t, s))
		case <-time.After(100 * time.Millisecond):
		}
		if err := load.send(ctx); err != nil {
			t.Fatal(err)
		}
		usage = bytesIn(t, filepath.Join(dir, "memory.usage_in_bytes"))
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "memory.oom_control")); strings.Contains(string(text), "oom_kill 1") {
		t.Errorf("the kernel killed: %s", text)
	}
	endAll(t, ended, dir)
	closed = true
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n := bytesIn(t, filepath.Join(dir, "memory.limit_in_bytes")); n != 100*mib {
		t.Errorf("after the end the limit is %d MiB, want the 100 MiB of before", n/mib)
	}
}

// endAll ends all processes of the group.
func endAll(t *testing.T, ended chan error, dir string) {
	t.Helper()
	for {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			t.Fatal(err)
		}
		pids := strings.Fields(string(text))
		for _, pid := range pids {
			n, _ := strconv.Atoi(pid)
			if p, err := os.FindProcess(n); err == nil && n > 1 {
				_ = p.Kill()
			}
		}
		if len(pids) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	<-ended
}
