// Package contribution says how much each component of an application
// contributes to the tail of its latency.
//
// With m load levels, T_i^j the mean sojourn time of component i at level j,
// and T_tail^j the tail latency of whole requests there:
//
//	T̄_i = Σ_j T_i^j / m
//	P_i = T̄_i / Σ_k T̄_k                                               (2)
//	ρ_i = Pearson(T_i^·, T_tail^·)                                     (3)
//	V_i = √( Σ_j (T_i^j − T̄_i)² / (m (m−1)) ) / T̄_i                    (4)
//	C_i = α_i ρ_i P_i V_i                                          (5), (6)
//
// α_i is 1 on the critical path R, and else the length of the longest other
// path through i, as a share of the length of R. The loadlimit is the first
// load whose coefficient of variation of sojourn times is over the mean of
// all levels, and the step of the slacklimit is 1 − C_i / Σ C.
//
// Source: Zhao et al., Rhythm, ACM TOCS 2023, equations (2) to (6), section
// 3.5.1 and algorithm 1. A component stands for the paper's Servpod, which is
// what one service has on one machine.
//
// Where the paper leaves something open: ρ of a constant series is 0; a
// component that never took time has V = 0; C_norm is C / Σ C, or 1/n where
// the sum is 0; without paths, and for a component on none of them, α is 1;
// of paths of one length the first listed is the critical one.
//
// A [Study] takes requests one by one, cuts them into load levels by the rate at
// which they came, and gives such a profile. [Blame] compares the requests of two
// times and says in which components the tail of their latency grew. Both read
// what package path tells of a request ([path.Request]).
//
//	c, err := contribution.Profile{Components: …, Tail: …}.Compute()
//
//	var before, after contribution.Requests // path.Config{Requests: before.Add}
//	v := contribution.Blame(&before, &after)
package contribution
