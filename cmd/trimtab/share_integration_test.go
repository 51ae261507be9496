//go:build integration

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The defaults, and a group above those of the workloads that nobody else uses: that one gets
// the limit of the pool, each workload a quota of its max alone, and what was there before comes
// back, after kill -9 by the watchdog.
func TestWorkloadsBelowOneGroupShareItsLimitByWeightAndAllComesBack(t *testing.T) {
	t.Parallel()
	p, _ := belowOne(t)
	p.text = regexp.MustCompile(`(?m)^nats: .*\n`).ReplaceAllString(p.text, "")
	p.q.read = func(string) float64 { return 0.9 } // nothing binds: each has its max
	has := func() map[string]string {
		t.Helper()
		out := map[string]string{}
		for _, file := range []string{"cpu.cfs_quota_us", "hungry/cpu.cfs_quota_us", "hungry/cpu.shares", "modest/cpu.cfs_quota_us", "modest/cpu.shares"} {
			b, err := os.ReadFile(filepath.Join(p.q.root, file))
			if err != nil {
				t.Fatal(err)
			}
			out[file] = strings.TrimSpace(string(b))
		}
		return out
	}
	before := has()
	want := maps.Clone(before)
	want["cpu.cfs_quota_us"], want["hungry/cpu.cfs_quota_us"], want["modest/cpu.cfs_quota_us"] = "100000", "90000", "90000"
	is := func(want map[string]string) func() error {
		return func() error {
			if got := has(); !maps.Equal(got, want) {
				return fmt.Errorf("%v, want %v", got, want)
			}
			return nil
		}
	}
	p.start()
	p.serve()
	p.until("one limit, above", is(want))
	p.until("a plan that leaves it to the kernel", func() error {
		if code, out := p.command("explain", "hungry"); code != exitDone || !strings.Contains(out, "the kernel shares") {
			return fmt.Errorf("%d: %s", code, out)
		}
		return nil
	})
	if err := is(want)(); err != nil {
		t.Errorf("while the needs fit: %v", err)
	}
	p.kill(false)
	p.until("what was there before, by the watchdog", is(before))
	p.start()
	p.until("one limit again", is(want))
	p.stop()
	if err := is(before)(); err != nil {
		t.Errorf("after the end: %v", err)
	}
}
