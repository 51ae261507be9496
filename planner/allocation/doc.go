// Package allocation holds what a round knows of one resource of one workload: the current amounts
// and bounds of its instances, its need, whether it may be written, and the result of each pass.
//
//	Look     what its instances have, and its bounds
//	Draw     the curve that it is planned by
//	Asks     what it needs, for package need; Claim: for a policy; Member: in an overload
//	Replicas the number of its instances, where that is planned with their size
//
// [Workload] and [State] are kept between rounds; everything else is new in each round. Capacity
// and the ledger belong to the pool, and only the planner knows them. The package does not decide
// between workloads, and reads no clock.
package allocation
