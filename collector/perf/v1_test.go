package perf

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// This one has run where the hierarchy was mounted by hand: no test mounts it, since the
// kernel then counts the groups of version 2 no more, for anybody.
func TestAGroupOfThePerfEventHierarchyOfVersion1IsCounted(t *testing.T) {
	const cpu = "/sys/fs/cgroup/cpu"
	twin := hostfs.Sibling(cpu, "perf_event")
	if twin == "" {
		t.Skip("no perf_event hierarchy of version 1 is mounted")
	}
	if got := Hierarchy(cpu); got != twin {
		t.Fatalf("counted by %s", got)
	}
	path := mkdir(t, cpu, "v1")
	if err := os.Mkdir(filepath.Join(twin, path), 0o755); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.Remove(filepath.Join(twin, path)) })
	c, o := collecting(t, "", poll.Config{Root: cpu, Targets: []poll.Target{{Workload: "w", Path: path}}})
	burn := worker(t, "busy", filepath.Join(cpu, path), filepath.Join(twin, path))
	c.round(t.Context())
	burn()
	c.round(t.Context())
	got := o.take(t)
	if s := got["w/ task_clock"]; s.Missing != "" || s.Value*float64(s.Window) < 0.8*burns.Seconds() {
		t.Errorf("%+v", s)
	}
}
