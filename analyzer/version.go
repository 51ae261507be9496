package analyzer

import (
	"slices"
	"time"
)

const (
	// maxKnown bounds the versions of one workload that are remembered.
	maxKnown = 64
	// calm is how many rounds must lie between two new versions that are
	// believed: a site that numbers every start must not keep a curve from
	// being learnt.
	calm = 10
)

// versions remembers what a workload's curve was learnt from.
type versions struct {
	known   []string // the oldest first
	revised time.Time
}

// take notes what runs at now, and reports whether a version is new. The first
// ones that are ever seen are what the curve is of, and so are not new.
func (v *versions) take(now time.Time, running []string, gap time.Duration) bool {
	first, fresh := len(v.known) == 0, false
	for _, name := range running[:min(len(running), maxKnown)] {
		if slices.Contains(v.known, name) {
			continue
		}
		if len(v.known) >= maxKnown {
			v.known = slices.Delete(v.known, 0, 1)
		}
		v.known = append(v.known, name)
		fresh = true
	}
	if first || !fresh || !v.revised.IsZero() && now.Sub(v.revised) < gap {
		return false
	}
	v.revised = now
	return true
}

// restore takes over what a snapshot says, as far as it makes sense.
func (v *versions) restore(known []string) {
	if len(known) <= maxKnown {
		v.known = slices.Clone(known)
	}
}
