package cpuset

import (
	"testing"

	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// BenchmarkHeartbeat is what one knob of real cores costs each second: what was asked
// for, and what is in force.
func BenchmarkHeartbeat(b *testing.B) {
	root, err := hostfs.CPUHierarchy()
	if err != nil {
		b.Skip(err)
	}
	g, err := cgroup.Create(root, "trimtab-bench-cores", "cpuset")
	if err != nil {
		b.Skip(err)
	}
	defer g.Remove(b.Context())
	k, err := Open(Config{Config: cgroup.Config{Root: rootOf(root), Path: g.Path()}})
	if err != nil {
		b.Fatal(err)
	}
	defer k.Close()
	for b.Loop() {
		if _, err := k.Read(b.Context()); err != nil {
			b.Fatal(err)
		}
		if _, err := k.Effective(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
