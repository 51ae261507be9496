// Package memory plays recorded memory usage under rules that set a memory limit, and counts
//
//	slack    = mean of (limit − usage) / limit
//	overruns = readings above the limit in force, which was set before them
//
// after a first day in which all of them only watch. A limit that was overrun is raised as the rule
// itself says.
//
//	trimtab    need of analyzer/workingset, looked at with each reading
//	autopilot  1.15 · (highest 5-minute peak of 48 h), the highest of such results of the last hour
//	autopilot98  1.15 · (98th percentile of 5-minute peaks, weights halve in 48 h), likewise
//	vpa        VPA's recommender: 90th percentile of the peaks of 24 h, weights halve in 24 h, · 1.15;
//	           after an OOM the limit at which it came · 1.2, at least 100 MiB more, counts as a peak
//
// Source: K. Rzadca et al., "Autopilot" (EuroSys'20), its moving window recommenders as we understand
// them: S_max for the least tolerance of OOMs, S_p for more; a half-life of 48 h for memory; a margin
// of 10 to 15%; the maximum of the last hour. The window of S_max, 48 h, is ours.
// kubernetes/autoscaler, Vertical Pod Autoscaler 1.7 (package sim/autoscale).
//
// The recordings are whole machines or clusters, not containers, and have no restarts.
package memory
