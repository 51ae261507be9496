// Package queue predicts the share of requests in time from what a request
// costs: with c core-seconds of work a request, λ requests per second, and a
// cores, the service is a queue with the rate a/c and the utilisation
// ρ = λ c / a, and
//
//	p(a, λ) = [1 − ρ exp(−k (a/c − λ) D')] · [1 − exp(−(1 − ρ)/b)],  0 for ρ >= 1
//	D'      = D − max(0, c/a − max(c, 0.1 s))
//
// The first factor is the waiting time of a queue with one server whose work
// varies little (k = 2.5; 1 for exponential service times, 2 for constant ones
// in heavy traffic). D is the latency of the SLO; a quota lets a lone request run
// at the full speed of a core, and stops it once that of a period is used up. The
// second factor is what fast services lose to bursts, whatever their latency: at
// b = 0.02, 5% of the requests at ρ = 0.94. Without D it stands alone, with b = 0.1.
//
// Nobody's service is that queue. So h tells how much worse it is, and is learnt:
// with h > 0.9 the cost enters as h c; with less, the cost stays 0.9 c, for no
// service works more than its CPU, and the rest of h makes its waiting shorter;
// its posterior is kept over a grid of [Points] values from 0.35 to 4 around a
// log-normal prior, and every report multiplies it by the binomial likelihood of
// its requests in time. The prediction is the mixture over the posterior, and
// its band the quantiles of that mixture. Old reports are forgotten by and by.
//
// That is enough to act on after seconds, at three requests per second and
// before any other allocation was tried; a learner without a model (learn/gp)
// takes over as reports come in: see [Inform].
//
// Source: L. Kleinrock, Queueing Systems I (1975), the waiting time in M/G/1 and
// its exponential tail; the factor h and the mixture are ours.
//
// The package measures nothing: cost and load are given.
package queue
