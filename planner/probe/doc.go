// Package probe decides who is lowered on trial, to learn what it needs, and
// pays for it.
//
//	risk     = P(p(to) < SLO) ≈ (SLO − lower(to)) / (upper(to) − lower(to))
//	budget   = Misses · Window rounds that may miss the SLO, of Window
//	allowed  : to < aim, 0 < risk < 1
//	           aim − to <= idle capacity          (the way back is free)
//	           Tried + risk <= Share · budget     (what trials may use)
//	           Missed + risk <= budget            (what is left at all)
//	           no miss in the last Calm rounds    (the budget does not burn)
//	choice   = argmax (aim − to)(1 − risk)        the most that is likely saved
//
// Missed and Tried are counts of rounds that fade by 1/Window a round. A round
// that misses counts as one, whoever caused it; a trial counts with its risk
// before anything is known of its outcome. One trial a round.
//
// Source: error budgets and burn rates as in site reliability engineering; the
// place of a trial is that of Cilantro (OSDI'23), equation (5). The paper's
// policies explore by their bounds, at the cost of those they explore with.
//
// The package does not choose targets, and a trial passes the guard like any
// other step. What is freed by a trial stays free. It tries nothing upwards:
// policies that read upper bounds give what is idle to whoever it may help, and
// NJC to whoever is not proven to have enough, so that what is idle after them
// has nothing to tell.
package probe
