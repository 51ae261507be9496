// Package shift decides which workloads make room on a full host. It is for pools in which
// workloads share CPU by weight on several hosts, one host is full, and one of its workloads also
// has an instance on a host that is not.
//
// By default each host serves its workloads by entitlement, as a single host does. The kernel
// shares a full host, load balancers keep sending requests there as long as they are answered, and
// a workload without instances elsewhere is late. Its share is therefore raised. The other
// workloads get less there, so that their load balancers send more to their other instances:
//
//	x_ih >= 0,  Σ_h x_ih = t n_i,  Σ_i x_ih <= C_h,  the greatest t        (package spread)
//	share_ih = max(crumb, x_ih), plus a part by entitlement of what that leaves of C_h
//
// where n_i is the CPU that the requests of workload i need, and C_h the CPU of host h. Weights
// alone are not enough if the others can use up the host's limit on CPUs of their own. If requests
// are still late after weighs, the workloads that make room therefore also get a limit. If requests
// are late even so after helps, all go back to their entitlements. How long a condition must last,
// and how long a choice stands, is as in package overload. If the needs do not fit (t < 1), all
// keep their entitlements.
//
// Source: the linear program is that of package spread; the times are ours, from experiments with
// real services (lab/bench/real, two-hosts).
//
// The package reads no clock and keeps no state: [Decide] takes the state of the last round and
// returns that of this one.
package shift
