package sizing

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// Place is where an instance has its limit, in a cluster.
type Place struct {
	*Size
	// Node is the node it runs on; "": it is in no cluster, and Fit leaves its Size as it is. Has is
	// what the node gives to all pods together, in bytes; 0: unknown.
	Node string
	Has  float64
	// Now is its limit, 0 without one. It may be set to Least to Most for now; Most 0: without a bound.
	// By and Note say why.
	Now, Least, Most float64
	By, Note         string
}

// PlaceOf returns the place of an instance by the report of its knob.
func PlaceOf(s *Size, k *trimtab.KnobState) Place {
	p := Place{Size: s, Least: k.Min}
	if !k.Now.Unlimited {
		p.Now = k.Now.Value
	}
	if k.Effective != nil && !k.Effective.Unlimited {
		p.Now = math.Max(p.Now, k.Effective.Value)
	}
	if at := k.Status; at != nil {
		p.Node, p.Has, p.Most, p.By, p.Note = at.Node, at.Has, at.Most, at.By, at.Note
	}
	return p
}

// Set returns when a limit was last set: by a plan, at planned, or since then by its agent.
func Set(planned time.Time, k *trimtab.KnobState) time.Time {
	if k.Since.After(planned) {
		return k.Since
	}
	return planned
}

// Fit changes the limits of instances to what their cluster allows now:
//
//	limit ≤ Most,  limit ≥ Least
//	Σ limits on a node ≤ max(what the node has, Σ limits in force)
//
// On a node, instances that are short of memory come first, then the smallest raises. Other nodes and
// other instances are not held up. A limit that is changed has its former value in Wanted, and the
// reason in Why; so has a learnt one of an instance without a limit.
func Fit(all []Place) {
	room := map[string]float64{}
	for _, p := range all {
		if _, known := room[p.Node]; !known {
			room[p.Node] = p.Has
		}
		room[p.Node] -= p.Now
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b Place) int {
		if a.Soon != b.Soon {
			return -cmp.Compare(soon(a), soon(b))
		}
		return cmp.Compare(a.Limit-a.Now, b.Limit-b.Now)
	})
	for _, p := range sorted {
		if p.Now <= 0 && p.Learnt {
			p.Wanted = p.Limit // no limit is added
		}
		if p.Node == "" || p.Now <= 0 {
			continue
		}
		want := p.Limit
		switch {
		case want > p.Now && p.Most > 0 && want > p.Most:
			p.set(math.Max(p.Now, p.Most), cmp.Or(p.By, "its cluster")+" allows no more")
		case want < p.Now && want < p.Least:
			p.set(math.Min(p.Now, p.Least), "it is not lowered further: "+cmp.Or(p.Note, "so much is in use"))
		}
		if more := p.Limit - p.Now; more > 0 && p.Has > 0 {
			if left := math.Max(0, room[p.Node]); more > left {
				p.set(p.Now+left, fmt.Sprintf("node %s has room for %s more beside the limits there", p.Node, show(left)))
			}
			room[p.Node] -= p.Limit - p.Now
		}
	}
}

func soon(p Place) int {
	if p.Soon {
		return 1
	}
	return 0
}

// set changes a limit.
func (s *Size) set(to float64, why string) {
	if s.Wanted == 0 {
		s.Wanted = s.Limit
	}
	s.Limit = to
	s.Why += "; " + why
}
