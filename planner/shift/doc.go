// Package shift decides which workloads make room on a full host, where workloads share CPU by
// weight on several hosts and one is full while another, on which a workload of the full one has
// an instance, too, is not.
//
// Each host by itself serves its workloads by entitlement, as one host does. The kernel shares a
// full one, load balancers send work there as long as it is answered, and who is on that host
// alone is late. So its share is raised, and the others make room, whose work their load
// balancers then send elsewhere:
//
//	x_ih >= 0,  Σ_h x_ih = t n_i,  Σ_i x_ih <= C_h,  the greatest t        (package spread)
//	share_ih = max(crumb, x_ih) and, by entitlement, what that leaves of C_h
//
// of the cost n_i of the requests of workload i. Weights alone do not do where the others have
// CPUs of their own to use up the limit of the host: if requests are still late after weighs,
// what makes room has a limit, too. It is tried for helps; if requests are late even then, all go
// back to their entitlements. How long something must last, and stands, is as in package overload.
// Where the needs do not fit (t < 1), they have these anyway.
//
// Source: the linear program is that of package spread; the times are ours, from trials on real
// services (lab/bench/real, two-hosts).
//
// The package reads no clock and keeps nothing: [Decide] takes the state of the last round and
// returns that of this one.
package shift
