package cgroup_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/cgroup"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/quantity"
)

// Found with resources of a whole pod, and the quota of a slice: what a container had by its
// own quota was told, and not what the groups above let it have.
func TestTheLeastQuotaOfAllGroupsAboveIsTheAllocation(t *testing.T) {
	root := t.TempDir()
	stat := func(group, quota string) {
		put(t, quota+" 100000\n", root, group, "cpu.max")
		put(t, fmt.Sprintf("usage_usec %d\nnr_periods %d\nnr_throttled %d\n", 9, 1, 0), root, group, "cpu.stat")
	}
	stat(".", "max")
	stat("slice", "120000")
	stat("slice/pod", "300000")
	stat("slice/pod/c", "400000")
	o := run(t, cgroup.Config{Root: root, Targets: []cgroup.Target{{Workload: "a", Path: "slice/pod/c"}}})
	allocation := func(want float64) {
		t.Helper()
		o.until(t, func(s *trimtab.Sample) bool {
			return s.Quantity == quantity.Allocation && s.Missing == "" && s.Value == want
		})
	}
	allocation(1.2)
	stat("slice", "max")
	allocation(3)
	stat(".", "50000") // the declared root is a container's group here
	allocation(0.5)
	stat("slice/pod/c", "max") // what it has of that depends on the others there
	o.until(t, func(s *trimtab.Sample) bool { return s.Quantity == quantity.Allocation && s.Missing == "unlimited" })
}

// Stops that no period that can be seen from here explains, such as by the quota of a
// container around it, are in cpu.stat.local since Linux 6.6 (kernel/sched/core.c,
// cpu_local_stat_show): 6 s on CPUs beside 2 s of use.
func TestStopsByAQuotaThatCannotBeSeenAreTold(t *testing.T) {
	none := hostfs.Quota{Micros: -1, Period: 100000}
	reading := func(s int, used, stopped time.Duration) *cgroup.Reading {
		return &cgroup.Reading{At: time.Duration(s) * time.Second, Used: used, Quota: none, Most: trimtab.Unlimited(), Local: &stopped}
	}
	for _, c := range []struct {
		stopped time.Duration
		want    any
	}{{6 * time.Second, 0.75}, {0, "no period elapsed"}} {
		got := values(cgroup.Samples("w", noon(), reading(1, time.Second, time.Second), reading(5, 3*time.Second, time.Second+c.stopped), nil))
		if got[quantity.Throttled] != c.want {
			t.Errorf("stopped for %v: %v, want %v", c.stopped, got[quantity.Throttled], c.want)
		}
	}
	if d := cgroup.ParseLocal("throttled_usec 6000000\n"); d == nil || *d != 6*time.Second {
		t.Errorf("%v", d)
	}
	if d := cgroup.ParseLocal("throttled_usec -1\n"); d != nil {
		t.Errorf("%v", d)
	}
}
