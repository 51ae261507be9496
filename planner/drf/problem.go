package drf

// Demand is one entry of a tenant's demand vector.
type Demand struct {
	// Resource is an index into [Problem.Capacities].
	Resource int
	// Amount is in the resource's unit, finite and >= 0; 0 is the same as no
	// entry.
	Amount float64
	// Weight is the tenant's weight on this resource; 0 means
	// [Tenant.Weight].
	Weight float64
}

// Tenant is a tenant with its demand.
type Tenant struct {
	// Demands is the vector that is scaled; each resource at most once.
	Demands []Demand
	// Weight is the tenant's entitlement against the others', > 0.
	Weight float64
	// Limit bounds the allocation to Limit times the demand, >= 0; 1 means
	// that the demand is all that the tenant wants. nil is no limit.
	Limit *float64
}

// Problem is a pool and the tenants that share it.
type Problem struct {
	// Capacities are the resources' sizes, each in its own unit, finite and >= 0. A tenant that
	// demands a resource with capacity 0 gets nothing.
	Capacities []float64
	// Room is the part of each capacity that may be allocated, in [0, capacity]; nil: all of it.
	// After a first pass that allocates guaranteed minimums, it is the rest; shares still count
	// against the whole capacity.
	Room []float64
	// Tenants are answered in this order.
	Tenants []Tenant
}

// The values of Bound for a tenant that no resource froze.
const (
	// ByLimit: the tenant reached its limit.
	ByLimit = -1
	// ByNothing: the tenant demands nothing; its level is 0.
	ByNothing = -2
	// ByStop: the solver was told to stop while the tenant was active.
	ByStop = -3
)

// Solution answers a [Problem]; the slices are in the order of its tenants.
type Solution struct {
	// Level is x_i, the weighted dominant share: max_r share_ir / w_ir.
	Level []float64
	// Share is the dominant share max_r allocation_ir / c_r, in [0, 1].
	Share []float64
	// Allocation is parallel to each tenant's Demands, in the resource's unit.
	Allocation [][]float64
	// Bound is the resource whose saturation froze the tenant, or [ByLimit], [ByNothing].
	Bound []int
	// Saturated lists the resources with capacity > 0 that are full at the
	// end (within 1e-12 of the capacity), ascending.
	Saturated []int
}
