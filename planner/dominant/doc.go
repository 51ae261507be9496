// Package dominant is dominant resource fairness as an objective of the
// planner: several resources, learned demands, guarantees, a tree of groups.
//
// Workload i demands d_ir of resource r with capacity C_r; s_i = max_r d_ir/C_r
// is the dominant share of its demand, and its rates are a_ir = d_ir/(C_r s_i),
// the greatest of them 1. At dominant share x_i it gets
//
//	share_ir = max(floor_ir, x_i a_ir),   allocation_ir = C_r share_ir
//
// with its minimum, and its guarantee as far as it demands it, as the floor.
// Over several hosts, f_ih being the part of its load that instances on host h serve,
// what there is are rows of a sparse matrix, a budget for each resource and one for
// each resource of each host that may become full:
//
//	Σ_i share_ir <= units_r/C_r,   Σ_i f_ih share_ir <= units_hr/C_r
//
// Shares count against the capacities of the pool: a host is where a share stops, and
// no measure of it. Where all is on one host, or no host can become full, the answer is
// that without hosts, bit for bit.
//
// Progressive filling raises every x_i at its rate ρ_i until a row that it draws on is
// full, or it has what it is to have:
//
//	pass 1    x_i <= s_i                     what meets the SLO
//	pass 2    x_i <= min_r max_ir/(C_r a_ir) what is left: work conservation
//
// Without groups ρ_i is the weight. In a tree the rate of a group is divided
// among those of its members that are still active, by weight, so that what
// one member leaves goes to its siblings first:
//
//	ρ_member = ρ_group w_member / Σ w of the active members,   ρ_root = 1
//
// With one resource this is weighted max-min fairness: clip(t w_i, floor, d_i).
// At the end shares are rounded down to whole units; units that are left go to
// the largest remainders, as far as hosts have room. The value is the least satisfaction, the part of its
// demand that the worst off workload gets.
//
// Where no floor binds and there are no groups the answer is that of
// planner/drf, which is faster; otherwise the filling of this package goes from
// event to event, O(events × (rows + groups)) with at most 1 + resources events a
// workload.
//
// Source: Ghodsi et al. (NSDI 2011), sections 4 and 6, for the filling; Kash,
// O'Shea, Volos, "DC-DRF" (SoCC 2018) for reservations first and work
// conservation of what is left, and for the resources of all hosts as one sparse
// matrix; Bhattacharya et al., "Hierarchical Scheduling for Diverse Datacenter
// Workloads" (SoCC 2013) for why a group must not wait for a member that is blocked.
//
// The package learns no demand: a demand vector that was declared too large is
// served as it stands.
//
//	answer, err := dominant.Policy{}.Share(&policy.Question{…})
package dominant
