package cgroup

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// If a value is valid by itself but conflicts with another file of the group, the kernel answers
// EINVAL. These functions find that file.

// burstFile returns the file of a group's CFS burst.
func burstFile(root *hostfs.Root, group string) string {
	if root.CgroupVersion(group) == 2 {
		return path.Join(group, "cpu.max.burst")
	}
	return path.Join(group, "cpu.cfs_burst_us")
}

// overBurst returns an error if a quota is below the burst, which the kernel refuses
// (kernel/sched/core.c, tg_set_cfs_bandwidth).
func overBurst(root *hostfs.Root, group string, q hostfs.Quota) error {
	name := burstFile(root, group)
	text, err := root.Read(name)
	if err != nil || q.Micros < 0 {
		return nil // a kernel before 5.14 has no burst; without a quota there is none
	}
	burst, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || burst <= q.Micros {
		return nil
	}
	return fmt.Errorf("a quota of %d us is below the burst of %d us that another program set in %s: write 0, or less than the quota, to that file first: %w",
		q.Micros, burst, path.Join(root.Path(), name), trimtab.ErrRefused)
}

// whyQuota adds to the kernel's refusal of a quota the other file that caused it.
func whyQuota(root *hostfs.Root, group string, q hostfs.Quota, err error) error {
	if !errors.Is(err, syscall.EINVAL) {
		return err
	}
	if why := overBurst(root, group, q); why != nil {
		return fmt.Errorf("%w: %w", why, err)
	}
	return err
}

// whyWeight does the same for a weight: the kernel accepts none while cpu.idle is 1
// (kernel/sched/fair.c, sched_group_set_shares).
func whyWeight(root *hostfs.Root, group string, err error) error {
	if !errors.Is(err, syscall.EINVAL) {
		return err
	}
	name := path.Join(group, "cpu.idle")
	if text, bad := root.Read(name); bad != nil || strings.TrimSpace(text) != "1" {
		return err
	}
	return fmt.Errorf("the group is idle, and takes no weight while %s is 1: write 0 to that file first: %w: %w", path.Join(root.Path(), name), trimtab.ErrRefused, err)
}

// Beside lists the siblings of a pool's groups that do not belong to the pool; ours reports which
// do. The error is trimtab.ErrRefused if the parent group has processes of its own.
func Beside(root, above string, ours func(group string) bool) (strangers []string, err error) {
	r, err := hostfs.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("list groups of %s: %w", above, err)
	}
	defer r.Close()
	names, err := r.Dirs(above)
	if err != nil {
		return nil, fmt.Errorf("list groups of %s: %w", above, err)
	}
	for _, name := range names {
		if group := path.Join(above, name); !ours(group) {
			strangers = append(strangers, group)
		}
	}
	text, err := r.Read(path.Join(above, "cgroup.procs"))
	if err == nil && text != "" {
		if _, bad := strconv.Atoi(text[:1]); bad == nil {
			err = fmt.Errorf("group %s has processes of its own: %w", above, trimtab.ErrRefused)
		}
	}
	return strangers, err
}
