// Package hosts is what is left of a pool and of its hosts while a policy gives
// units to workloads: a sparse matrix of load shares.
//
//	Σ_w f_wh x_w <= C_h  for every host h,   Σ_w x_w <= R
//
// A workload that gets x units takes f_wh x of host h. Hosts that cannot become
// full, since Σ_w f_wh max_w <= C_h, are left out. Where that leaves none, or where
// everybody is on one host, [Fold] gives the problem without hosts, which the
// policies solve as they always did.
//
// Source: ours.
//
//	room := hosts.New(problem)
//	if n <= room.Most(w) {
//		room.Take(w, n)
//	}
package hosts
