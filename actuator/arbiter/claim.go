package arbiter

import (
	"math"
	"strings"

	"github.com/trimtab/trimtab"
)

// Claim is one claimant's use of one resource, in the resource's unit.
type Claim struct {
	// Now is the sum of the limits of its knobs.
	Now float64 `json:"now"`
	// May is the largest sum that the limits may reach without another grant, at least Now.
	May float64 `json:"may"`
	// Idle is the capacity that the claimant has promised to work that gives way, such as speculative
	// tasks. Others may have claimed the same capacity and leave it idle: [Headroom] ignores Idle.
	Idle float64 `json:"idle,omitempty"`
	// Root is the absolute path of the control group whose Capacity was measured; "": the host.
	// A claim in a root is also a claim in all roots above it.
	Root string `json:"root,omitempty"`
	// Capacity is the capacity of Root for all pools together; nil: not measured.
	Capacity *float64 `json:"capacity,omitempty"`
}

func (c *Claim) validate() error {
	if trimtab.Units(c.Now).Validate() != nil || trimtab.Units(c.May).Validate() != nil || c.May < c.Now {
		return trimtab.Invalidf("claim of %v now, %v at most", c.Now, c.May)
	}
	if trimtab.Units(c.Idle).Validate() != nil {
		return trimtab.Invalidf("claim of %v that others leave idle", c.Idle)
	}
	if c.Capacity != nil && trimtab.Units(*c.Capacity).Validate() != nil {
		return trimtab.Invalidf("claim: capacity %v", *c.Capacity)
	}
	return nil
}

// Headroom returns the largest sum to which a claimant may raise its knobs, given the others' claims.
// It is infinite if nothing was measured or no other claimant exists: a single pool has its own
// limit. If it is less than own.Now, the claimant must raise nothing, and need not lower anything.
func Headroom(own Claim, others []Claim) float64 {
	room := math.Inf(1)
	if !claimed(own, others) {
		return room
	}
	for _, d := range append([]Claim{own}, others...) {
		// Every root that contains the claimant's root limits all claims in it. If several
		// claimants measured one root, the smallest value counts: it leaves the largest reserve.
		if d.Capacity != nil && within(own.Root, d.Root) {
			room = min(room, headroomIn(d.Root, *d.Capacity, own, others))
		}
	}
	return room
}

// headroomIn returns Headroom within one root.
func headroomIn(root string, capacity float64, own Claim, others []Claim) float64 {
	now, may := 0.0, 0.0
	for _, o := range others {
		if within(o.Root, root) {
			now += o.Now
			may += o.May
		}
	}
	return max(capacity-may, min(own.May, capacity-now))
}

// IdleRoom returns the largest Idle of a claimant with which all claimants together promise at most
// whole to work that gives way.
func IdleRoom(own Claim, others []Claim, whole float64) float64 {
	for _, o := range others {
		if within(o.Root, own.Root) || within(own.Root, o.Root) {
			whole -= o.Idle
		}
	}
	return whole
}

// within reports whether root equals other, or lies in it.
func within(root, other string) bool {
	other = strings.TrimSuffix(other, "/")
	return root == other || other == "" || strings.HasPrefix(root, other+"/")
}

// claimed reports whether any of the others claims something in a root that contains, or lies in,
// that of own.
func claimed(own Claim, others []Claim) bool {
	for _, o := range others {
		if o.May > 0 && (within(o.Root, own.Root) || within(own.Root, o.Root)) {
			return true
		}
	}
	return false
}
