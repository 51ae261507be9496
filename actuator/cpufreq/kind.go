package cpufreq

import (
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Kind is this kind of knob. A location is declared as the path of a group, as of
// the kind cgroup; its root is that of the hierarchy with the cpu controller where
// none is. Knobs that one Kind opens know of each other's policies.
func Kind() actuator.Kind {
	open := new(Neighbours)
	return actuator.Kind{
		Name: "cpufreq", Resources: []string{trimtab.Frequency},
		Probe: func(at actuator.Location) (actuator.Location, error) {
			var err error
			if at.Root == "" {
				at.Root, err = hostfs.CPUHierarchy()
			}
			return at, err
		},
		Find: actuator.FindGroups,
		Open: func(at actuator.Location, _ string) (actuator.Knob, error) {
			return actuator.OrNil(Open(Config{Root: at.Root, Path: at.Path, Force: at.Force, Neighbours: open}))
		},
		Reopen:  func(undo []byte) (actuator.Knob, error) { return actuator.OrNil(Reopen(undo)) },
		Measure: func(actuator.Location, string) (float64, error) { return Sum() },
	}
}

// Sum returns the highest frequencies of all policies of this host together, in
// MHz: what workloads on policies of their own can have at most. The error is
// trimtab.ErrUnsupported where the host has none.
func Sum() (float64, error) {
	f, err := openFolder(system)
	if err != nil {
		return 0, fmt.Errorf("measure frequency: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing is kept back until then
	return sum(f)
}

func sum(f files) (mhz float64, err error) {
	all, err := readAll(f, system)
	if err != nil {
		return 0, fmt.Errorf("measure frequency: %w", err)
	}
	for _, p := range all {
		mhz += float64(p.most) / 1000
	}
	return mhz, nil
}
