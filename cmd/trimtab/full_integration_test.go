//go:build integration

package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab/internal/supervise"
)

// unitTimeout is TimeoutStopSec of the units: what systemd waits before it kills.
const unitTimeout = 30 * time.Second

// The storage directory is full, so that nothing can be stored: each of 16 partitions, the
// learner, the planner and the bus have something to save, and systemd stops the service.
func TestAStopOnAFullDiskEndsWithinTheTimeOfTheUnit(t *testing.T) {
	t.Parallel()
	p := prepare(t, anyQuotas(t), "analyzer: {report_interval: 200ms, partitions: 16}\n")
	mount(t, p.storage(), "size=8m")
	p.start()
	stop := p.serve()
	p.until("both limits moved", p.moved)
	fill(t, p.storage())
	p.until("a store that cannot be written", func() error {
		_, body, err := p.get("/-/ready")
		if err == nil && strings.Contains(body, "cannot write its store") {
			return nil
		}
		return fmt.Errorf("%s: %w", body, err)
	})
	stop()
	began := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err := p.cmd.Wait()
	took := time.Since(began)
	t.Logf("ended after %v: %v", took, err)
	if err != nil || took > unitTimeout {
		t.Errorf("ended with %v after %v, and systemd kills after %v\n%s", err, took, unitTimeout, p.log())
	}
	p.until("the baselines", p.restored)
	if supervise.EndWithin >= unitTimeout {
		t.Errorf("the end may take %v", supervise.EndWithin)
	}
}
