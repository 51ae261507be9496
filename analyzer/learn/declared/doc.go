// Package declared holds the curves that an operator declares for a workload
// that cannot tell its performance: a recorded profile, and a demand.
//
//	profile:  p(a, l) = f(a/l), linear between the points of f, linear to 0
//	          below the first, flat above the last
//	demand:   u(p(a)) = min(1, a/d) u(SLO): utility linear up to the demand d
//
// Source: Cilantro (OSDI'23), section 5, "When online job feedback is
// unavailable". The package learns nothing and decides nothing: when its
// curves stand in, and what they may do, is in the packages analyzer and
// planner.
package declared
