// Package cilantro is the experiment of a cluster shared by many jobs: rounds
// of two minutes, twelve reports in each, and policies that must learn from
// them what each job needs. It runs the same analyzer and planner steps as
// production, the baselines of the paper, and oracles that know the truth.
//
//	p_j(a, l) = profile_j(a/l)        the true performance
//	u_j = m, m² or √m,  m = min(1, p_j/SLO_j)
//	social = mean_j u_j,  egalitarian = min_j u_j,
//	NJC = min(1, min_j u_j(a_j)/u_j(R w_j/Σw)),  useful = Σ min(a_j, d_j)/R
//
// Scores are taken in each window of ten seconds on the true performance; the
// mean over the windows of a round, then over the rounds.
//
// Source: Cilantro (OSDI'23), section 7.1, table 3 and appendix A; profiles
// and trace are those published with it, or curves fitted to them.
//
// The package knows one resource and no machines: units are as good as each
// other. It reads no file and no clock; see package sim.
package cilantro
