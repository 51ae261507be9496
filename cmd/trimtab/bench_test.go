package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/internal/site"
)

// reactGroups is how many reactions the reaction time is judged over.
const reactGroups = 300

// BenchmarkAlertToLimit measures from the publication of an alert on the bus
// to the outcome that says the limit was written and read back, on real
// cgroups of version 1 where they are writable, else on files of version 2.
func BenchmarkAlertToLimit(b *testing.B) {
	for range b.N {
		took := reactions(b)
		slices.Sort(took)
		at := func(q float64) float64 { return 1000 * took[int(q*float64(len(took)-1))].Seconds() }
		b.ReportMetric(at(0.5), "p50-ms")
		b.ReportMetric(at(0.99), "p99-ms")
		b.ReportMetric(float64(len(took)), "groups")
		b.Logf("alert on the bus -> plan -> CPU limit written and read back: p50 %.1f ms, p99 %.1f ms, worst %.1f ms over %d groups (asked: p99 <= 100 ms)",
			at(0.5), at(0.99), at(1), len(took))
	}
}

func benchQuotas(b *testing.B) quotas {
	if os.Getuid() == 0 {
		return kernelQuotas(b)
	}
	return fixtureQuotas(b)
}

// reactions lets the estimates swing, so that every alert's round has
// something to move, and times each round.
func reactions(b *testing.B) []time.Duration {
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	q := benchQuotas(b)
	cfg := loopConfig(b, q.root)
	cfg.Round, cfg.Lease = 10*time.Minute, 30*time.Minute
	cfg.Analyzer.ReportInterval = 10 * time.Minute
	s, err := site.Open(ctx, cfg, site.Options{Logger: slog.New(slog.DiscardHandler), AlertGap: time.Nanosecond})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	outcomes := make(chan *trimtab.Outcome, 64)
	stop, err := s.Bus().Subscribe(ctx, bus.Subscription{Kind: trimtab.KindOutcome, Handle: func(_ context.Context, d bus.Delivery) error {
		outcomes <- d.Value.(*trimtab.Outcome)
		return nil
	}})
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	var took []time.Duration
	for i := 0; len(took) < reactGroups; i++ {
		// A swing takes three steps of B units, so it is told every third time.
		if i%3 == 0 {
			publishSwing(ctx, b, s, i/3)
		}
		for len(outcomes) > 0 {
			<-outcomes
		}
		began := time.Now()
		alert := &trimtab.Alert{Workload: "hungry", Name: "Slow", Group: fmt.Sprint("group ", i), Fingerprint: fmt.Sprint(i), Firing: true, Time: began}
		if err := s.Bus().Publish(ctx, alert); err != nil {
			b.Fatal(err)
		}
		if awaitWritten(ctx, b, outcomes) {
			took = append(took, time.Since(began))
		}
		if i > 20*reactGroups {
			b.Fatalf("only %d of %d alerts moved a limit", len(took), i)
		}
	}
	return took
}

// awaitWritten returns whether the round ended with a written grow: shrinks
// come first, and the reaction is over when the last write was read back.
func awaitWritten(ctx context.Context, b *testing.B, outcomes <-chan *trimtab.Outcome) bool {
	quiet := time.NewTimer(300 * time.Millisecond)
	defer quiet.Stop()
	for {
		select {
		case o := <-outcomes:
			for _, r := range o.Results {
				if r.Status == trimtab.Written && r.Before.Less(r.Found) {
					return true
				}
			}
		case <-quiet.C:
			return false
		case <-ctx.Done():
			b.Fatal(ctx.Err())
		}
	}
}

// publishSwing gives the planner estimates under which the other workload
// needs more than the last time.
func publishSwing(ctx context.Context, b *testing.B, s *site.Site, i int) {
	b.Helper()
	needs := []float64{0.3, 0.62}
	now := time.Now()
	for k, name := range []string{"hungry", "modest"} {
		need := needs[(i+k)%2]
		p := 0.5
		e := &trimtab.Estimate{Workload: name, Time: now, Model: "bench/1", Reports: 100, Performance: &p,
			Load: &trimtab.LoadForecast{Now: 100, Mean: 100, Upper: 100, Level: 0.9, Model: "bench/1"},
			Curve: &trimtab.Curve{Load: 100, Level: 0.9, Knots: []trimtab.Knot{
				{Allocation: 0.01, Band: trimtab.Band{Lower: 0.01, Mean: 0.02, Upper: 0.03}},
				{Allocation: need, Band: trimtab.Band{Lower: 0.95, Mean: 0.96, Upper: 0.97}},
				{Allocation: 0.9, Band: trimtab.Band{Lower: 0.97, Mean: 0.98, Upper: 0.99}}}}}
		if err := s.Bus().Publish(ctx, e); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkIdle measures `trimtab run` as a process of its own, without
// configuration but for free ports: time to ready, then memory and CPU.
func BenchmarkIdle(b *testing.B) {
	for range b.N {
		ready, cpu, rss := idle(b)
		b.ReportMetric(ready.Seconds()*1000, "ready-ms")
		b.ReportMetric(100*cpu, "%core")
		b.ReportMetric(rss, "rss-MiB")
		b.Logf("trimtab run, idle: ready after %.0f ms (asked: <= 1 s), %.2f%% of a core (asked: <= 1%%), %.1f MiB resident (asked: <= 64)", ready.Seconds()*1000, 100*cpu, rss)
	}
}

// release builds trimtab as `make build` does. What a process has resident counts
// with the pages of its binary that it maps: those of a test binary, which has the
// tests and its tables of symbols, are 20 MiB more.
func release(tb testing.TB) string {
	tb.Helper()
	binary := filepath.Join(tb.TempDir(), "trimtab")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -funcalign=16", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as `make build` does
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

func idle(b *testing.B) (ready time.Duration, cpu, rssMiB float64) {
	dir := b.TempDir()
	binary := release(b)
	file := filepath.Join(dir, "t.yaml")
	if err := os.WriteFile(file, []byte("otlp: {grpc: \"127.0.0.1:0\", http: \"127.0.0.1:0\"}\njaeger: {grpc: \"127.0.0.1:0\"}\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	const address = "127.0.0.1:19641"
	cmd := exec.Command(binary, "run", "--config.file", file, "--web.listen-address", address, "--storage.path", filepath.Join(dir, "data"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}()
	for {
		resp, err := http.Get("http://" + address + "/-/ready")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Since(began) > 20*time.Second {
			b.Fatal("not ready after 20 s")
		}
	}
	ready = time.Since(began)
	const settle, measured = 3 * time.Second, 20 * time.Second
	<-time.After(settle)
	before := cpuSeconds(b, cmd.Process.Pid)
	<-time.After(measured)
	return ready, (cpuSeconds(b, cmd.Process.Pid) - before) / measured.Seconds(), statusMiB(b, cmd.Process.Pid, "VmRSS")
}

// cpuSeconds reads fields 14 and 15 of /proc/PID/stat, in ticks of 10 ms.
func cpuSeconds(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err1 := strconv.ParseFloat(fields[11], 64)
	system, err2 := strconv.ParseFloat(fields[12], 64)
	if err1 != nil || err2 != nil {
		b.Fatal(err1, err2)
	}
	return (user + system) / 100
}

func statusMiB(b testing.TB, pid int, key string) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kib / 1024
		}
	}
	b.Fatalf("no %s of process %d", key, pid)
	return 0
}
