package reclaim

import "math"

// sane reports whether all are numbers that a time, a resource or a count can be.
func sane(values ...float64) bool {
	for _, v := range values {
		if !(v >= 0 && v <= 1e100) {
			return false
		}
	}
	return true
}

// result is v where it is a number.
func result(v float64) (float64, bool) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, false
	}
	return v, true
}

// Loss is the preemption loss L (1): the service that a job occupies, resources x
// makespan, with preemption, less that without.
//
//	L = t_pmtn r_pmtn − t_orig r_orig
//
// It is false where one of them is not a number, or below 0.
func Loss(tPreempted, rPreempted, tOriginal, rOriginal float64) (float64, bool) {
	if !sane(tPreempted, rPreempted, tOriginal, rOriginal) {
		return 0, false
	}
	return result(tPreempted*rPreempted - tOriginal*rOriginal)
}

// DataParallel returns the makespan of a data-parallel job, such as one of Spark, with the
// fraction c done after t seconds, and the fraction p of its resources from then on.
//
//	t_pmtn = (t / c) (1 − c) / p + t
//
// It is false if nothing is done yet, if p is 0, and if an input is invalid: such a job is
// unpredictable.
func DataParallel(t, c, p float64) (float64, bool) {
	if !sane(t, c, p) || c <= 0 || c > 1 || p <= 0 {
		return 0, false
	}
	return result(t/c*(1-c)/p + t)
}

// Training is the makespan of a training job that has run for t seconds, has s steps
// to go and makes q of them in a second.
//
//	t_pmtn = s / q + t
//
// It is false where it makes none, and where an input makes no sense.
func Training(t, s, q float64) (float64, bool) {
	if !sane(t, s, q) || q <= 0 {
		return 0, false
	}
	return result(s/q + t)
}

// Useless returns the computation U (7) that would have to be repeated: that since the last
// checkpoint, with the resources r; 0 for a job that is only slowed down and for one with another
// live replica.
//
//	U = t_ckpt r_orig
//
// It is false if an input is invalid.
func Useless(sinceCheckpoint, r float64, slowed, replica bool) (float64, bool) {
	switch {
	case slowed || replica:
		return 0, true
	case !sane(sinceCheckpoint, r):
		return 0, false
	}
	return result(sinceCheckpoint * r)
}
