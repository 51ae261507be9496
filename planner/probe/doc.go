// Package probe decides who is lowered on trial, to learn what it needs, who is
// raised on trial, to learn whether more would help, and pays for it.
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
// Upwards, for who is expected to miss its SLO and whose upper bound promises
// more than is known of where it is, the risk is that it is in vain:
//
//	risk     = P(p(to) <= mean(aim)) ≈ (mean(aim) − lower(to)) / (upper(to) − lower(to))
//	allowed  : to > aim, mean(aim) < SLO, upper(to) > mean(aim)
//	           to − aim <= idle capacity          (nobody is lowered for it)
//	           Tried + risk <= Share · budget     (what trials may use)
//	           nobody else's budget burns         (what is idle is their way back)
//	choice   = argmax (min(upper(to), SLO) − mean(aim)) / SLO · (1 − risk)
//
// After Calm rounds what was in vain is given back; what helped is the policy's.
//
// Missed and Tried are counts of rounds that fade by 1/Window a round. A round
// that misses counts as one, whoever caused it; a trial counts with its risk
// before anything is known of its outcome. One trial a round, upwards first.
//
// Source: error budgets and burn rates as in site reliability engineering; the
// place of a trial is that of Cilantro (OSDI'23), equation (5). The paper's
// policies explore by their bounds, at the cost of those they explore with.
//
// The package does not choose targets, and a trial passes the guard like any
// other step. What is freed by a trial stays free. Policies that read upper
// bounds give what is idle to whoever it may help by themselves; trials upwards
// are for those that hardly do, as egalitarian, whose mean sees nothing beyond
// a plateau.
package probe
