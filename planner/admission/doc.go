// Package admission decides which requests of one service are admitted, which wait and which are
// refused at once, so that admitted ones are answered within the SLO.
//
// It computes three quantities, all from the requests that pass the gate:
//
//	service time    R = A / X                    (Little: in service, answered per second)
//	limit           L = X · T,  T = max(1.5 S, D/8)
//	longest wait    W = D − q(R)
//
// D is the SLO, S the service time without load. L requests in service keep the service busy: while
// it is not busy, R = S < T, and L grows until R reaches T. Beyond that point any further request
// would only wait inside the service, where its order cannot be chosen. The other requests wait in
// the gate: by class, then first tries before retries, then the oldest first. A request that has
// waited longer than W is refused, and q is the 90th percentile of R.
//
// A class is overloaded if its queue is never empty and requests of it are refused in three ticks.
// Then q is the 99th percentile of R and W at most D/2, and a request is refused on arrival if it
// would wait longer than W even at the highest recent throughput. A service that stalls for a while
// also causes a queue, but no refusals: as long as the load is below capacity, a queue that can be
// answered in time is kept.
//
// S is the lowest observed R. It rises slowly while no request waits. It rises at once if the limit
// was halved and R did not fall: the service was then not busy, and its requests have become more
// expensive. Until that has been seen T is at most D/2: a gate that starts in an overload sees no R but
// that of a queue, and would keep it.
//
// A rate that is set from outside bounds the admissions per second, of all requests or of a class. The
// rule raises one that is too low (budget.go); where it is too high, the limit holds.
//
// The limit is that of Little's law with the SLO as the target in place of the gradient of
// latencies (Netflix concurrency-limits, Envoy adaptive_concurrency): it cannot drift upwards under
// a lasting load. When it shrinks, X is about the highest recent throughput, so that a stall of the
// service does not count. The queue's two bounds follow CoDel (RFC 8289): a queue that stands is
// overload, a queue that empties is a burst.
//
// The package is pure: times are arguments. It does not forward requests, measure CPU or write to
// clients.
//
//	c := admission.New(admission.Settings{Within: 200 * time.Millisecond, Classes: 3})
//	switch c.Arrive(now, t) {
//	case admission.Admitted: … c.Done(now, t, admission.Answered)
//	case admission.Waiting:  … t.Decide is called later
//	case admission.Refused:  …
//	}
//	c.Tick(now) // every 100 ms
package admission
