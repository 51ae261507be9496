// Package signals observes the state of a host's services: by hardware counters if they work, else
// by the time that services waited for resources, and by their latency. While no speculative task
// runs it learns the normal level of each signal; while tasks run it reports anomalies:
//
//	value > boundary, for a signal of one copy of a service
//
// Source: ROSE, sections 4.2 and 6.2; the models are those of analyzer/fingerprint.
//
//	for _, service := range s.Observe(now, tasksRanUntil) { … service.Samples … }
//
// It does not decide what to do about an anomaly: planner/throttle does.
package signals
