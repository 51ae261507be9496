// Package sizing plays recorded usage of memory or CPU under rules that set a limit, and counts
//
//	over     = mean of max(0, limit − usage)
//	under    = mean of max(0, usage − limit)
//	slack    = mean of (limit − usage) / limit
//	overruns = readings above the limit in force, which was set before them
//	kills    = overruns whose reading before was within its limit (memory)
//
// after a first day, or a third of a shorter recording, in which all rules only watch. A rule does not
// see more than the limit at an overrun: the instance could not have used more. It is told of the
// overrun, and raises its limit as it itself says.
//
//	trimtab      memory: need of analyzer/workingset and planner/sizing, CPU: planner/usage; at each reading
//	vpa          VPA's recommender (package sim/autoscale): its target, at each reading
//	eks          CPU: p95 / 0.87 after 12 h (package sim/autoscale)
//	dpa          CPU: p95 of 8 days · 1.05; memory: peak of 8 days · 1.05, and 1.2 times the limit after a kill
//	limit        the limit that was recorded
//	thumb        1.2 · (99th percentile of 5-minute peaks of 8 days), once an hour
//	autopilot    memory: 1.15 · (highest 5-minute peak of 48 h), the highest such result of the last hour
//	autopilot98  memory: 1.15 · (98th percentile of 5-minute peaks, weights halve in 48 h), likewise
//
// Source: K. Rzadca et al., "Autopilot" (EuroSys'20), its moving window recommenders as we understand
// them: S_max for the least tolerance of OOMs, S_p for more; a half-life of 48 h for memory; a margin
// of 10 to 15%; the maximum of the last hour. The window of S_max, 48 h, is ours.
//
// A recording has what an instance used under the limit that it had. What it would have used under
// another one, and how it starts after a kill, is not known.
package sizing
