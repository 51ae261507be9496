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
//   - Load levels: each 10 s of traffic is a load. The 12 clusters of loads with
//     the fewest requests are merged with their neighbours, and cut into at most 10
//     levels of 100 requests or more. Requests count half after 6 hours of traffic,
//     so what a service was like before fades. Traffic beside best-effort jobs is
//     kept apart: it tells contributions where there is no other, and no loadlimit.
//
//   - loadlimit: as above, from the calmest level on and where the CoV is over the
//     mean by twice its standard error; with at least 4 levels whose loads differ
//     by half. The load is a share of the largest one seen.
//
//   - Growth of the tail: the last minute against the time before, which counts half
//     after an hour. A quantile has grown where the precedence test (with at most
//     500 requests each, since live requests are not independent) and the scatter of
//     10-s quantiles both say so, and by a tenth. While it has, the traffic is not
//     taken for normal, until that lasted half an hour.
//
//   - Its parts: the votes of [Blame] by class of latency, each √2 wide. All requests
//     of a class vote together, so a request that is slow for a reason of its own
//     cannot be told from others of its class, and an edge has no distribution of
//     its own to be judged by: these two rules of [Blame] need single requests.
//
//   - The gap rule is the same, with means in the place of medians.
//
//     c, err := contribution.Profile{Components: …, Tail: …}.Compute()
//
//     var before, after contribution.Requests // path.Config{Requests: before.Add}
//     v := contribution.Blame(&before, &after)
package contribution
