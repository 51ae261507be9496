// Package kubernetes plays a day of ten services, by sim/kubernetes, whose pods take 5 to 60 s to
// start, with three recorded loads. For each autoscaler it computes the minutes with a missed SLO
// and the core-hours. The first day of a load is for learning, the second is scored.
//
//	trimtab  as in production
//	hpa      CPU utilisation, pods of 1 core
//	keda     requests per second and pod, pods of 1 core
//	oracle   knows the load and the formula, sizes without delay
//
// hpa and keda are played with every threshold of a list. Each service then counts with its best
// threshold in hindsight: that with the fewest core-hours and no more missed minutes than trimtab,
// or, if there is none, that with the fewest missed minutes.
//
// Source: ours; loads of the Internet Traffic Archive (ClarkNet-HTTP 29 and 30 August 1995,
// WorldCup98 17 and 18 June 1998, per minute; NASA-HTTP 5 and 6 July 1995, means of 5
// minutes).
package kubernetes
