// Package sojourn learns, from spans, how long a visit of one component takes
// over what the component is given: a curve with one unknown, the service time
// w, so that one interval of spans is enough to know all of it.
//
//	T(a) = w / (1 − λ w / a)    ⇒    w = T / (1 + λ T / a)
//
// for λ visits per ms that a units serve, each one at a time (M/M/1 per unit).
// Beyond saturation w tends to a/λ from below: that the component needs more
// than it has is known at once, how much more only after it has more. ln w is
// followed by a scalar Kalman filter, which begins anew where a report is three
// deviations off.
//
// Source: the mean sojourn times per component of Rhythm (TOCS'23), section
// 3.2; L. Kleinrock, "Queueing Systems", volume 1, section 3.2. That they give
// the prior of an end-to-end model is ours.
//
// The package adds up no components and knows no paths.
//
//	var c sojourn.Curve
//	err := c.Observe(sojourn.Report{Allocation: 8, Rate: 1800, Mean: 12})
//	ms := c.Mean(10, 0)
package sojourn
