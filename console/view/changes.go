package view

import (
	"slices"
	"time"
)

// maxNames is the largest number of workloads that one [Change] names.
const maxNames = 200

// Changes returns the changes after version, and the present version.
func (v *Model) Changes(version uint64, now time.Time) (Change, uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := Change{Workloads: []string{}, Time: now}
	if v.plans.newest.Value != nil {
		c.Plan = v.plans.newest.Value.ID()
	}
	for name, s := range v.workloads.all {
		if s.version <= version {
			continue
		}
		if len(c.Workloads) == maxNames {
			c.Workloads, c.All = []string{}, true
			break
		}
		c.Workloads = append(c.Workloads, name)
	}
	slices.Sort(c.Workloads)
	return c, v.workloads.version
}

// Touch wakes all waiters because something outside of the view changed, such as whether a part of
// the process is ready.
func (v *Model) Touch() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.workloads.version++
	v.publish()
}

// Changed returns a channel that is closed at the next change.
func (v *Model) Changed() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.awaited = true
	return v.changed
}
