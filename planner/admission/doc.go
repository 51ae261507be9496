// Package admission decides which requests of one service are let in, which wait and which are
// refused at once, so that those that are let in are answered within the SLO.
//
// Three quantities, all from what passes the gate:
//
//	service time    R = A / X                    (Little: in service, answered per second)
//	limit           L = X · T,  T = max(1.5 S, D/8)
//	longest wait    W = D − q(R)
//
// D is the SLO, S the service time without load. L requests in service keep the service busy: a
// service that is not busy has R = S < T, so L grows until R reaches T, and beyond that point
// every further request only waits inside the service, where nobody can put it in order. The
// rest waits in the gate: first by class, then first tries before retries, then the oldest first.
// A request that has waited longer than W is refused, and q is the 90th percentile of R.
//
// The requests of a class are in overload when their queue is never empty and some of them are
// refused in three ticks. Then q is the 99th percentile of R, W at most D/2, and a request is
// refused when it comes if by the highest throughput of late it would wait longer than W. A
// service that stands still for a while makes a queue as well, but none that needs refusals: below
// its capacity a queue is let stand as long as it can be answered.
//
// S is the lowest R that was seen. It rises slowly while nobody waits, and at once if the limit
// was halved and R stayed: then the service was not busy, its requests became dearer.
//
// The limit is that of Little's law with the SLO as the target in place of the gradient of
// latencies (Netflix concurrency-limits, Envoy adaptive_concurrency): it cannot drift upwards
// under a load that lasts. Where it shrinks, X is about the highest of late: a stall of the service
// does not count. The queue's two bounds follow CoDel (RFC 8289): a queue that stands is overload,
// a queue that empties is a burst.
//
// It is pure: times are arguments, and it does not forward, measure CPU or write to clients.
//
//	c := admission.New(admission.Settings{Within: 200 * time.Millisecond, Classes: 3})
//	switch c.Arrive(now, t) {
//	case admission.Admitted: … c.Done(now, t, admission.Answered)
//	case admission.Waiting:  … t.Decide is called later
//	case admission.Refused:  …
//	}
//	c.Tick(now) // every 100 ms
package admission
