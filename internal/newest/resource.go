package newest

import (
	"cmp"
	"math"
)

// HostResource is a host and a resource of which a workload has an allocation. Without a host it means all
// hosts.
type HostResource struct{ Host, Resource string }

// Compare orders places by host, and then by resource.
func (p HostResource) Compare(o HostResource) int {
	return cmp.Or(cmp.Compare(p.Host, o.Host), cmp.Compare(p.Resource, o.Resource))
}

// Given is the allocation of a workload in a place: the sum over its instances there.
type Given struct {
	Amount float64
	// Unknown says that an instance has no limit, or cannot be read.
	Unknown   bool
	Instances int
}

// Add adds the allocation of other instances.
func (g *Given) Add(o Given) {
	g.Amount, g.Unknown, g.Instances = added(g.Amount, o.Amount), g.Unknown || o.Unknown, g.Instances+o.Instances
}

// added adds two amounts; an overflow gives the largest number.
func added(a, b float64) float64 { return min(a+b, math.MaxFloat64) }

// Given returns the allocation of a workload in each place.
func (f *Hosts) Given(workload string) map[HostResource]Given {
	out := map[HostResource]Given{}
	for _, h := range f.On(workload) {
		its := h.Of(workload)
		for i := range its {
			k := &its[i]
			at, amount := HostResource{h.Name, k.Resource}, k.InForce()
			g := out[at]
			g.Add(Given{amount.Value, amount.Unlimited || k.Problem != "", 1})
			out[at] = g
		}
	}
	return out
}
