// Package fingerprint says in few numbers what a machine and a workload are like:
// the load level of a series without its outliers, and whether a workload runs
// slower than it does alone. It runs on the host, so that only results travel.
//
// # Load level
//
// [Approximation] is algorithms 1 and 2. With quartiles Q1, Q3 and IQR = Q3 − Q1, an
// outlier is outside [Q1 − p IQR, Q3 + p IQR]. The level of a window is its last
// value if it is monotone, the mean without outliers if it is shorter than k; else
// it is cut in time order into segments of ⌈n/k⌉, and the level is the last of their
// means without outliers if these are monotone, else the mean of those without
// outliers. Where the paper leaves something open: monotone is not strict; quartiles
// are those of Hyndman and Fan's type 7, or 6, or Tukey's hinges ([Quartile]); empty
// segments are left out. Order statistics are found by counting, in O(n).
//
// # Slower than alone
//
// A [Workload] takes what hardware counters say of short intervals ([Sample]), joins
// them to windows of 0.5 s, and judges each:
//
//	CPI  = cycles / instructions
//	MPKI = 1000 · misses of the shared cache / instructions
//
// It learns only from windows in which the caller says that nothing ran beside the
// workload, and judges each of these before it learns it: so the share of them that
// were called anomalies, its measured false-alarm rate ([Rate]), is of windows that
// it had not seen. Each of the models below measures its own.
//
// The paper fits CPI by a Gamma and MPKI by a chi-square distribution, and calls
// anomalous what is over the quantile with the mass above it that a normal has above
// +3 σ. By maximum likelihood, with ψ the digamma function:
//
//	ln k − ψ(k) = ln mean(x) − mean(ln x), θ = mean(x)/k;   ψ(ν/2) = mean(ln x) − ln 2
//
// The fit judges where a gate lets it: its distance of Kolmogorov and Smirnov from
// what was measured is at most 0.05, or so small that the windows do not refute it;
// phases explain at most a tenth of the variance; and it called at most 1% of the
// windows alone anomalous.
//
// Elsewhere a model of ours judges, phase by phase. Phases are told apart by accesses
// to the shared cache per 1000 instructions, which a program makes and a neighbour
// hardly changes: a neighbour changes how many of them miss, and what they take.
// Windows count the less the further their accesses are from those of the window in
// question, up to 28% in the logarithm (a kernel regression). With n the effective
// number of these windows, m and s² the mean and variance of ln x, the latter with a
// prior of 4 windows with σ = 3%:
//
//	ln boundary = m + margin · t(n+3) · s · √(1 + 1/n)
//
// where t has as much of Student's distribution above it as a normal has above +2 σ.
// The margin is 1 at first. It adapts to the windows alone that are over the boundary,
// by adaptive conformal inference, so that their share tends to at most 1% whatever
// the distribution. A phase that was not seen in three windows is unknown: no
// judgement is made, and none is an alarm. Where accesses are not counted, the cores
// used tell phases apart, which is much weaker; with neither, all is one phase.
//
// In both models what is less than 5% over the middle is not over the boundary, since
// a narrow distribution makes anomalies of slowdowns that nobody feels (nn: 4%, in
// every window). Three of the last five windows over the boundary of CPI are an
// anomaly. More misses alone are none, since a program may not feel them (nn: 16
// times as many); what MPKI says is told beside it, as a hint at the cause.
//
// What a workload knows takes 16 KiB on the host at most, and 128 bytes as a
// [Summary]. The past counts 4.5 h of windows, then it fades. Values that cannot be
// are refused and change nothing, missing ones are missing.
//
// Source: Yang et al., ROSE, IEEE TPDS 2020, sections 4 and 6.2, algorithms 1 and 2.
// The parameters of our model were chosen on the counters of
// dcslab-snu/experiment-data by TestAlarmsOnProgramsAloneAreAtMostOneInAHundred and
// TestEveryCoRunThatSlowsByMoreThan8PercentIsFoundWithin5Seconds; docs/papers.md has
// their tables. The package decides nothing: who is suspected, and what is throttled,
// is for the planner.
//
//	level, err := a.Of(window)                    // a := fingerprint.Default()
//	j, ok, err := w.Observe(at, sample, alone)    // w := fingerprint.New()
//	if ok && j.Anomaly { … j.Slowdown, j.FalseAlarms … }
package fingerprint
