package freezer

import (
	"cmp"
	"sync/atomic"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Kind describes this kind of knob. Its locations are those of cgroup.Kind. Knobs that one Kind
// opens share the open files of a root.
func Kind() actuator.Kind {
	roots, vain, k := new(cgroup.Roots), new(atomic.Int64), cgroup.Kind()
	k.Name, k.Resources, k.Measure = "freezer", []string{trimtab.Running, trimtab.Alive}, nil
	k.Open = func(at actuator.Location, resource string) (actuator.Knob, error) {
		// Version 1 has a separate hierarchy for the freezer.
		root := cmp.Or(hostfs.Sibling(at.Root, "freezer"), at.Root)
		c := Config{Root: root, Path: at.Path, Force: at.Force, Roots: roots}
		if resource == trimtab.Alive {
			knob, err := OpenAlive(c)
			if err == nil {
				knob.vain = vain
			}
			return actuator.OrNil(knob, err)
		}
		return actuator.OrNil(OpenRunning(c))
	}
	k.Reopen = actuator.FirstOf(actuator.Reopens(ReopenRunning), actuator.Reopens(ReopenAlive))
	return k
}
