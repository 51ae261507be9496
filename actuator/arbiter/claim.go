package arbiter

import (
	"math"
	"strings"

	"github.com/trimtab/trimtab"
)

// Claim is what one claimant uses of one resource, in the resource's unit.
type Claim struct {
	// Now is what its knobs are limited to together.
	Now float64 `json:"now"`
	// May is the most that they may come to without another grant, at least Now.
	May float64 `json:"may"`
	// Root is the group of processes that Capacity was measured of, as an absolute
	// path; "": the host. What is claimed in a root is claimed in all above it.
	Root string `json:"root,omitempty"`
	// Capacity is what pools may have in Root together; nil: not measured.
	Capacity *float64 `json:"capacity,omitempty"`
}

func (c *Claim) validate() error {
	if trimtab.Units(c.Now).Validate() != nil || trimtab.Units(c.May).Validate() != nil || c.May < c.Now {
		return trimtab.Invalidf("claim of %v now, %v at most", c.Now, c.May)
	}
	if c.Capacity != nil && trimtab.Units(*c.Capacity).Validate() != nil {
		return trimtab.Invalidf("claim: capacity %v", *c.Capacity)
	}
	return nil
}

// Room returns the most that a claimant may raise its knobs to in sum, given the others' claims.
// It is infinite where nothing was measured, or no other claims anything: a single pool has its
// own limit. It may be less than own.Now: then nothing is raised, and nothing need be lowered.
func Room(own Claim, others []Claim) float64 {
	room := math.Inf(1)
	if !claimed(own, others) {
		return room
	}
	for _, d := range append([]Claim{own}, others...) {
		// Each root that has the claimant's in it bounds all that is claimed in it.
		// Where several measured one root, the least counts: it has the largest reserve.
		if d.Capacity != nil && within(own.Root, d.Root) {
			room = min(room, roomIn(d.Root, *d.Capacity, own, others))
		}
	}
	return room
}

// roomIn is Room within one root.
func roomIn(root string, capacity float64, own Claim, others []Claim) float64 {
	now, may := 0.0, 0.0
	for _, o := range others {
		if within(o.Root, root) {
			now += o.Now
			may += o.May
		}
	}
	return max(capacity-may, min(own.May, capacity-now))
}

// within reports whether a root is another, or lies in it.
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
