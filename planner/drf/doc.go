// Package drf divides several resources among tenants by weighted extended
// dominant resource fairness, exactly, up to millions of each.
//
// Tenant i demands d_ir of resource r with capacity c_r, and has weights w_ir
// (one number for all resources, or one each). Its level is
//
//	x_i = max_r share_ir / w_ir,   share_ir = allocation_ir / c_r
//
// and allocations are in the proportions of the demand, so that they follow
// from the level: share_ir = x_i a_ir with the rate
//
//	a_ir = (d_ir / c_r) / max_s (d_is / (c_s w_is)),   max_r a_ir / w_ir = 1.
//
// Progressive filling raises all levels together. A tenant freezes when it reaches its limit, or
// when a resource that it demands is full; the others continue. The result is max-min fair over
// weighted dominant shares.
//
// The filling is driven by events. With F_r the sum of the rates of the active
// tenants and U_r the room left, resource r is full at T_r = U_r / F_r, and
// freezing tenants at levels <= T_r never lowers T_r: a stale T is a lower
// bound, and a lazy queue gives the exact order of events in one pass over the
// entries. See solve.go.
//
// Source: Kash, O'Shea, Volos, "DC-DRF: Adaptive Multi-Resource Sharing at
// Public Cloud Scale" (SoCC 2018); extended DRF from Parkes, Procaccia, Shah,
// "Beyond Dominant Resource Fairness" (EC 2012); DRF from Ghodsi et al. (NSDI
// 2011). DC-DRF's epsilon loop and the textbook rounds are here as baselines.
//
// The package starts no goroutine, reads no clock and allocates nothing large
// of its own: a deadline comes as a stop function, memory as an [Arena]. It does not learn demands and does not round to whole
// units.
//
//	s, err := drf.Solve(drf.Problem{
//		Capacities: []float64{9, 18}, // cores, GiB
//		Tenants: []drf.Tenant{
//			{Weight: 1, Demands: []drf.Demand{{Resource: 0, Amount: 1}, {Resource: 1, Amount: 4}}},
//			{Weight: 1, Demands: []drf.Demand{{Resource: 0, Amount: 3}, {Resource: 1, Amount: 1}}},
//		},
//	})
//	// s.Allocation = [[3 12] [6 2]], s.Share = [2/3 2/3]
package drf
