package cpufreq

import (
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// CPUs returns the CPUs that a control group of a hierarchy may run on; see [Open].
func CPUs(dir, group string) ([]int, error) { return groupCPUs(dir, group) }

// groupCPUs returns the CPUs that a control group may run on, of either version.
// The error is os.ErrNotExist when the group is gone.
func groupCPUs(dir, group string) ([]int, error) {
	root, err := hostfs.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open cgroup %s: %w", group, err)
	}
	defer root.Close()
	there, err := root.Exists(group)
	if err == nil && !there {
		err = os.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("find cgroup %s in %s: %w", group, dir, err)
	}
	sets := root
	if twin := hostfs.Sibling(dir, "cpuset"); twin != "" { // version 1 keeps them apart
		if sets, err = hostfs.OpenRoot(twin); err != nil {
			return nil, fmt.Errorf("open cpuset of cgroup %s: %w", group, err)
		}
		defer sets.Close()
	}
	// A group without a cpuset of its own has that of its parent.
	for at := group; ; at = path.Dir(at) {
		for _, name := range []string{"cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"} {
			text, err := sets.Read(path.Join(at, name))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			all, err := ParseCPUs(text)
			if err != nil {
				return nil, err
			}
			if len(all) > 0 {
				return all, nil
			}
		}
		if at == "." {
			return nil, fmt.Errorf("CPUs of cgroup %s in %s: no cpuset tells them: %w", group, dir, trimtab.ErrUnsupported)
		}
	}
}
