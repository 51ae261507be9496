// Package spread turns the target of each workload into an amount for each of
// its instances.
//
//	a_i = clamp(f_i x, min_i, max_i)      instance i of a workload with target x
//	Σ_{i on h} a_i <= C_h,  Σ_i a_i <= R
//	effective = min_i a_i / f_i
//
// f_i is the instance's share of the load, Σ f_i = 1: load balancers spread
// evenly, so it is 1/n unless the load of the instance is known. The slowest
// instance sets the tail, hence the minimum. All amounts are whole quanta of one
// resource. Amounts are rounded down, and quanta that are left go to the largest
// remainders, as far as the workload's target, the host and the pool have room.
//
// An instance that cannot be read keeps what it has and counts at its maximum.
// A new instance starts with the median of its siblings' amounts. Where a host,
// or the pool, has too little for all wanted amounts, their parts above the minimums
// are cut in proportion. If that is due to an instance that cannot be read, no
// instance is lowered for it.
//
// Source: ours. The package knows no curve, no objective and no bus; it does not
// bound how far a round goes, which the guard does, and orders no writes, which package
// issue does.
//
//	p := spread.Pool{Quanta: 800, Hosts: []int{400, 400}, Workloads: …}
//	amounts, err := p.Amounts()
package spread
