package hostfs

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// CgroupVersion returns 1 or 2: by the file system, or in a tree of plain files by the files of
// the group.
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

// Look returns a context for one round of reading many groups, during which [Root.QuotaIn] reads
// the quota of each group once: all groups of a pool have the same ancestors. One goroutine uses
// it.
func Look(ctx context.Context) context.Context {
	return context.WithValue(ctx, lookKey{}, map[groupAt]seenQuota{})
}

type lookKey struct{}

type groupAt struct {
	root  *Root
	group string
}

type seenQuota struct {
	quota Quota
	err   error
}

// QuotaIn reads the CPU quota of a group as [Root.Quota] does, once in a [Look].
func (r *Root) QuotaIn(ctx context.Context, group string) (Quota, error) {
	seen, _ := ctx.Value(lookKey{}).(map[groupAt]seenQuota)
	at := groupAt{r, group}
	if s, ok := seen[at]; ok {
		return s.quota, s.err
	}
	q, err := r.Quota(group)
	if seen != nil {
		seen[at] = seenQuota{q, err}
	}
	return q, err
}

// Accounting returns the directory that accounts CPU time for the groups in root if that is
// another one (version 1 may mount cpuacct beside cpu); else "".
func Accounting(root string) string { return Sibling(root, "cpuacct") }

// Sibling returns the directory of another version 1 controller for the groups in root, which lies
// in the hierarchy of the cpu controller: "" if root has no path element named cpu (alone or with
// others, as in cpu,cpuacct), if there is no such directory, or if it is the same one.
func Sibling(root, controller string) string {
	clean := filepath.Clean(root)
	parts := strings.Split(clean, "/")
	at := slices.IndexFunc(parts, func(p string) bool { return slices.Contains(strings.Split(p, ","), "cpu") })
	if at < 0 {
		return ""
	}
	parts[at] = controller
	twin := strings.Join(parts, "/")
	a, errA := os.Stat(clean)
	b, errB := os.Stat(twin)
	if errA != nil || errB != nil || os.SameFile(a, b) {
		return ""
	}
	return twin
}
