package site

import (
	"errors"
	"path/filepath"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// rootsOf returns the groups in which this host has cgroups, by resource, without
// links: two pools that have one group know it by one name.
func rootsOf(all []knobConfig) map[string]string {
	roots := map[string]string{}
	for _, d := range all {
		if d.cgroup.Root == "" {
			continue
		}
		root, err := filepath.EvalSymlinks(d.cgroup.Root)
		if err != nil {
			root = d.cgroup.Root // it is not there yet
		}
		if root, err = filepath.Abs(root); err == nil {
			roots[d.Resource] = root
		}
	}
	return roots
}

// measureOf measures what the pool may give out of this host, where it has
// cgroups; nil where it has none. Numbers of workers are not measured.
func measureOf(cfg *config.Config, all []knobConfig) func() (map[string]float64, error) {
	roots := rootsOf(all)
	if len(roots) == 0 {
		return nil
	}
	reserve := cfg.Actuator.Reserve
	return func() (map[string]float64, error) {
		capacity := map[string]float64{}
		var errs []error
		for _, m := range []struct {
			resource string
			measure  func(root string) (float64, error)
			reserve  float64
		}{{trimtab.CPU, hostfs.CPUs, reserve.CPU}, {trimtab.Memory, hostfs.Memory, float64(reserve.Memory)}} {
			root, ok := roots[m.resource]
			if !ok {
				continue
			}
			v, err := m.measure(root)
			switch {
			case errors.Is(err, trimtab.ErrUnsupported): // a tree of plain files is no host's
			case err != nil:
				errs = append(errs, err)
			default:
				capacity[m.resource] = max(0, v-m.reserve)
			}
		}
		return capacity, errors.Join(errs...)
	}
}
