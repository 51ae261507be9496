// Package allocation has what a round knows of one resource of one workload: what its instances
// have and may have, what it needs, whether it may be written, and what each pass made of it.
//
//	Look     what its instances have, and its bounds
//	Draw     the curve that it is planned by
//	Asks     what it needs, for package need; Claim: for a policy; Member: in an overload
//	Replicas the number of its instances, where that is planned with their size
//
// [Workload] and [State] are what is kept of it between rounds; all else is made anew in each.
// Capacity and the ledger are the pool's, and known to the planner alone. The package decides
// nothing among workloads and reads no clock.
package allocation
