// Package fair answers rounds by entitlement: resource-fair shares, and the
// NJC procedure ("no justified complaints"), with weights, bounds, hierarchies
// of groups and guarantees.
//
//	entitlement_j = w_j R / Σ w            every workload's due; in a tree of
//	                                       groups R Π w/Σ w along its path
//	a_j(s) = clamp(s w_j, min_j, d_j)      with the level s so that Σ a_j = R
//
// NJC gives each workload its demand d_j where that is below its share, and splits what is left
// among the others, again and again, until no demand is below its share: the level s is the last
// share per unit of weight. So no complaint is justified: a workload with less than its demand has
// at least its entitlement. Capacity that no workload demands stays unused. Resource-fair is the
// same with every demand at the maximum.
//
// Source: Cilantro (OSDI'23), section 4.1.1, "An NJC policy" and equation (3). Demands are read off
// the curves by package planner (equations 5, 6). A tree is divided from the root down: a group is
// one member of the group above, wants what its members want together, and divides what it gets in
// the same way. The guarantee of a workload or group is allocated before anything is shared by
// weight, as far as the workload demands it: min_j above is the greater of guarantee and minimum.
//
// Over several hosts the level of each workload rises until a host that it runs on, or the pool, is
// full; the others go on. A workload with less than it wants then has a full host on which no
// workload has more per weight, except by a guarantee: max-min fairness (Bertsekas and Gallager,
// Data Networks, 6.5.2).
//
// The package does not learn demands.
//
//	r, err := fair.NJC(60, []float64{10, 40, 100}, nil)
//	// r.Allocation = [10 25 25], *r.Share = 25
package fair
