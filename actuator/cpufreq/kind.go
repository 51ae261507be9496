package cpufreq

import (
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// Kind returns the kind of knob that limits the clock of a group's CPUs. A location is the
// path of a group, as for the kind cgroup; without a root it is in the hierarchy with the
// cpu controller. Two knobs that one Kind opens never change the same policy.
func Kind() actuator.Kind {
	open := new(Neighbours)
	return actuator.Kind{
		Name: "cpufreq", Resources: []string{trimtab.Frequency},
		Probe: actuator.ProbeGroups,
		Find:  actuator.FindGroups,
		Open: func(at actuator.Location, _ string) (actuator.Knob, error) {
			return actuator.OrNil(Open(Config{Root: at.Root, Path: at.Path, Force: at.Force, Neighbours: open}))
		},
		Reopen:  actuator.Reopens(Reopen),
		Measure: func(actuator.Location, string) (float64, error) { return Sum() },
	}
}

// Sum returns the sum of the highest frequencies of all policies of this host, in MHz: the most
// that workloads with policies of their own can have together. The error is
// trimtab.ErrUnsupported if the host has no policies.
func Sum() (float64, error) {
	f, err := openFolder(system)
	if err != nil {
		return 0, fmt.Errorf("measure frequency: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read, or each write has returned
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
