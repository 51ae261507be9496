package hostfs

import (
	"slices"
	"testing"
)

func TestTheHierarchyWithTheCPUControllerIsFoundInTheMountTable(t *testing.T) {
	const table = `22 1 0:20 / /proc rw - proc proc rw
29 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
30 25 0:27 / /sys/fs/cgroup/with\040space rw - cgroup2 cgroup2 rw
31 25 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
broken line
32 25 0:29 - cgroup2
`
	v1, v2 := cgroupMounts(table)
	if v1 != "/sys/fs/cgroup/cpu,cpuacct" || !slices.Equal(v2, []string{"/sys/fs/cgroup/with space"}) {
		t.Errorf("%q %q", v1, v2)
	}
}
