package hostfs

import (
	"os"
	"path"
	"path/filepath"
	"strings"
)

// CgroupVersion tells 1 from 2: by the file system, and in a tree of plain
// files by the files of the group.
func (r *Root) CgroupVersion(group string) int {
	switch r.kind {
	case Cgroup1:
		return 1
	case Cgroup2:
		return 2
	}
	if ok, err := r.Exists(path.Join(group, "cpu.cfs_quota_us")); ok && err == nil {
		return 1
	}
	return 2
}

// Quota reads the CPU quota of a group of either version.
func (r *Root) Quota(group string) (Quota, error) {
	if r.CgroupVersion(group) == 2 {
		s, err := r.Read(path.Join(group, "cpu.max"))
		if err != nil {
			return Quota{}, err
		}
		return ParseCPUMax(s)
	}
	quota, err := r.Read(path.Join(group, "cpu.cfs_quota_us"))
	if err != nil {
		return Quota{}, err
	}
	period, err := r.Read(path.Join(group, "cpu.cfs_period_us"))
	if err != nil {
		return Quota{}, err
	}
	return ParseCFS(quota, period)
}

// Accounting returns the directory that accounts CPU time for the groups in
// root when that is another one, as where version 1 mounts cpuacct beside cpu;
// else "".
func Accounting(root string) string {
	clean := filepath.Clean(root)
	before, after, found := strings.Cut(clean+"/", "/cpu/")
	if !found {
		return ""
	}
	twin := filepath.Join(before, "cpuacct", after)
	a, errA := os.Stat(clean)
	b, errB := os.Stat(twin)
	if errA != nil || errB != nil || os.SameFile(a, b) {
		return ""
	}
	return twin
}
