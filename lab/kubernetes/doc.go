// Package kubernetes plays a day of ten services, by sim/kubernetes, whose pods take 5 to 60 s to
// start, with three recorded loads. For each autoscaler it computes the minutes with a missed SLO
// and the core-hours. The first day of a load is for learning, the second is scored.
//
//	trimtab          as in production
//	trimtab-steps    the same, sizes in steps of a quarter core that fall after an hour
//	trimtab-number   the same with pods of 1 core: their number alone changes
//	hpa              CPU utilisation, pods of 1 core
//	keda             requests per second and pod, pods of 1 core
//	vpa, eks, dpa    requests of a fixed number of pods: as many as the mean load has cores of work,
//	                 of 2 cores at first; vpa resizes in place
//	oracle           knows the load and the formula, sizes without delay
//
// What the requests of all pods reserve is told beside what is used and what would suffice, with the
// nodes of 8 cores that they need by best fit.
//
// hpa and keda are played with every threshold of a list. Each service then counts with its best
// threshold in hindsight: that with the fewest core-hours and no more missed minutes than trimtab,
// or, if there is none, that with the fewest missed minutes.
//
// Source: ours; loads of the Internet Traffic Archive (ClarkNet-HTTP 29 and 30 August 1995,
// WorldCup98 17 and 18 June 1998, per minute; NASA-HTTP 5 and 6 July 1995, means of 5
// minutes).
package kubernetes
