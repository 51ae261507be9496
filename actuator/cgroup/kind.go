package cgroup

import (
	"cmp"
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Kind returns this kind of knob. A location is the path of a group; the default root is the
// hierarchy with the cpu controller. Knobs opened by one Kind share the open files of a root.
func Kind() actuator.Kind {
	roots := new(Roots)
	return actuator.Kind{
		Name: "cgroup", Resources: []string{trimtab.CPU, trimtab.Memory, trimtab.Weight},
		Probe: actuator.ProbeGroups,
		Find:  actuator.FindGroups,
		Open: func(at actuator.Location, resource string) (actuator.Knob, error) {
			c := Config{Root: rootOf(at, resource), Path: at.Path, Force: at.Force, Roots: roots}
			switch resource {
			case trimtab.Memory:
				return actuator.OrNil(OpenMemory(c))
			case trimtab.Weight:
				c.Idles = at.High
				return actuator.OrNil(OpenWeight(c))
			}
			if at.ShareUnit > 0 {
				most := trimtab.Unlimited()
				if at.ShareMost > 0 {
					most = trimtab.Units(at.ShareMost)
				}
				return actuator.OrNil(OpenShare(c, at.ShareUnit, most))
			}
			return actuator.OrNil(Open(c))
		},
		Reopen: actuator.FirstOf(actuator.Reopens(Reopen), actuator.Reopens(ReopenMemory),
			actuator.Reopens(ReopenWeight), actuator.Reopens(ReopenShare)),
		Measure: func(at actuator.Location, resource string) (float64, error) {
			switch resource {
			case trimtab.Memory:
				return hostfs.Memory(rootOf(at, resource))
			case trimtab.CPU:
				return hostfs.CPUs(at.Root)
			}
			return 0, fmt.Errorf("measure %s: a host has no certain amount of it: %w", resource, trimtab.ErrUnsupported)
		},
	}
}

// rootOf returns the root of the groups for a resource: version 1 has a separate hierarchy for
// memory.
func rootOf(at actuator.Location, resource string) string {
	if resource == trimtab.Memory {
		return cmp.Or(hostfs.Sibling(at.Root, "memory"), at.Root)
	}
	return at.Root
}
