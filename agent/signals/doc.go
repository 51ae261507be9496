// Package signals follows how the services of a host stand: by hardware counters where they
// count, else by what they waited for, and by their own latency. While no speculative task
// runs it learns what each is like; afterwards it says which signals are anomalies:
//
//	value > boundary, for a signal of one copy of a service
//
// Source: ROSE, sections 4.2 and 6.2; the models are those of analyzer/fingerprint.
//
//	for _, service := range s.Observe(now, tasksRanUntil) { … service.Samples … }
//
// It does not decide what is done about an anomaly: planner/throttle does.
package signals
