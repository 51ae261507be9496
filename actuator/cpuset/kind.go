package cpuset

import (
	"cmp"
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Guests is the name of a group of speculative tasks: they run on cores that others leave idle,
// and have none exclusively.
const Guests = "oversubscribed"

// Kind returns the kind of knob that sets the CPUs of a cgroup; its locations are those of
// cgroup.Kind. All knobs that one Kind opens share the open directory of each root and the
// topology of the machine.
func Kind() actuator.Kind {
	roots, machine, k := new(cgroup.Roots), new(Machine), cgroup.Kind()
	k.Name, k.Resources = "cpuset", []string{trimtab.Cores}
	k.Open = func(at actuator.Location, _ string) (actuator.Knob, error) {
		c := cgroup.Config{Root: rootOf(at.Root), Path: at.Path, Force: at.Force, Roots: roots}
		return actuator.OrNil(Open(Config{Config: c, High: at.High, Machine: machine}))
	}
	k.Reopen = func(undo []byte) (actuator.Knob, error) { return actuator.OrNil(reopen(undo, machine)) }
	k.Measure = func(at actuator.Location, _ string) (float64, error) { return measure(rootOf(at.Root), machine) }
	return k
}

// rootOf returns the root of the cpusets: version 1 has a hierarchy for them.
func rootOf(root string) string { return cmp.Or(hostfs.Sibling(root, "cpuset"), root) }

// measure counts the physical cores that groups in root may have together.
func measure(root string, m *Machine) (float64, error) {
	r, err := hostfs.OpenRoot(root)
	if err != nil {
		return 0, fmt.Errorf("measure cores: %w", err)
	}
	defer r.Close()
	if r.Filesystem() == hostfs.Ordinary {
		return 0, fmt.Errorf("measure cores: %s is no control group: %w", root, trimtab.ErrUnsupported)
	}
	name := effective2
	if r.Filesystem() == hostfs.Cgroup1 {
		name = effective1
	}
	text, err := r.Read(name)
	if err != nil {
		return 0, fmt.Errorf("measure cores: %w: %w", err, trimtab.ErrUnsupported)
	}
	all, err := ParseSet(text)
	if err != nil {
		return 0, fmt.Errorf("measure cores: %w", err)
	}
	t, err := m.Topology()
	if err != nil {
		return 0, fmt.Errorf("measure cores: %w", err)
	}
	return float64(len(t.Cores(m.Usable(all)))), nil
}
