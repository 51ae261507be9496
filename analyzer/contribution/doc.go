// Package contribution computes how much each component of an application contributes to the tail
// of its latency.
//
// With m load levels, T_i^j the mean sojourn time of component i at level j, and T_tail^j the tail
// latency of whole requests there:
//
//	T̄_i = Σ_j T_i^j / m
//	P_i = T̄_i / Σ_k T̄_k                                               (2)
//	ρ_i = Pearson(T_i^·, T_tail^·)                                     (3)
//	V_i = √( Σ_j (T_i^j − T̄_i)² / (m (m−1)) ) / T̄_i                    (4)
//	C_i = α_i ρ_i P_i V_i                                          (5), (6)
//
// α_i is 1 on the critical path R; otherwise it is the length of the longest other path through i
// relative to the length of R. The loadlimit is the first load at which the coefficient of
// variation (CoV) of sojourn times exceeds its mean over all levels. The step of the slacklimit is
// 1 − C_i / Σ C.
//
// Source: Zhao et al., Rhythm, ACM TOCS 2023, equations (2) to (6), section 3.5.1 and algorithm 1.
// A component stands for the paper's Servpod, which is all instances of one service on one machine;
// if spans name hosts, it is exactly that.
//
// The paper leaves open, and we chose: ρ of a constant series is 0; a component that never took
// time has V = 0; C_norm is C / Σ C, or 1/n if the sum is 0; α is 1 without paths, and for a
// component on none of them; of several longest paths the first one listed is critical.
//
// A [Study] reads single requests, divides them into load levels by their rate, and computes such a
// profile. [Blame] compares the requests of two times, and finds the components in which the tail
// of their latency grew. Both read requests from package path ([path.Request]).
//
// A [Live] does both from sketches of live traffic, which have sums but no single requests:
//
//   - Load levels: each 10 s of traffic has a load. At most 12 clusters of loads are
//     kept, of which neighbours with few requests are merged, and divided into at most
//     10 levels of at least 100 requests. Requests have a half-life of 6 hours of
//     traffic, so that the behavior of older releases is forgotten. Traffic during
//     best-effort jobs is kept apart: contributions are computed from it only if there
//     is no other, and a loadlimit never.
//
//   - loadlimit: as above, but from the level with the lowest CoV on, and only where the
//     CoV exceeds the mean by twice its standard error. It needs at least 4 levels, and
//     a largest load of 1.5 times the smallest. The load is relative to the largest one.
//
//   - Growth of the tail: the last minute is compared with the time before, which has a
//     half-life of an hour. A quantile has grown if the precedence test (with at most
//     500 requests each, since live requests are not independent) and the scatter of
//     10-s quantiles both say so, and the growth is at least 10%. While it lasts, the
//     traffic does not count as normal; after half an hour it does.
//
//   - Parts of the growth: the votes of [Blame], by classes of latency that are a factor
//     of √2 wide. All requests of a class vote together. Two rules of [Blame] need single
//     requests and do not apply: a request that is slow for a reason of its own cannot be
//     told from others of its class, and an edge is not judged by its own distribution.
//
//   - Starved callers are found as in [Blame], with means in place of medians.
//
//     c, err := contribution.Profile{Components: …, Tail: …}.Compute()
//
//     var before, after contribution.Requests // path.Config{Requests: before.Add}
//     v := contribution.Blame(&before, &after)
package contribution
