package main

import (
	"time"
)

// period is the kernel's default period of a CPU quota
// (kernel/sched/fair.c: default_cfs_period).
const period = 100 * time.Millisecond

// queue is a model of one service under a CPU quota: requests are served one
// after the other by one thread, which may use Quota of CPU time in each
// period and then stands still until the next one begins. What is left of a
// period's quota is lost (the kernel's default: no burst).
//
// It leaves out that nginx and PostgreSQL serve several requests at a time,
// and everything that other processes do.
type queue struct {
	// Free is when the last request is done.
	free time.Duration
	// index is the period in which CPU time was used last, used how much.
	index int64
	used  time.Duration
}

// serve takes in a request that arrives at at, not before the last one, and
// needs cost of CPU time under quota per period, which is > 0. It returns when
// the request is done.
func (q *queue) serve(at, cost, quota time.Duration) time.Duration {
	quota = min(quota, period) // one thread
	now := max(at, q.free)
	for {
		if index := int64(now / period); index != q.index {
			q.index, q.used = index, 0
		}
		end := time.Duration(q.index+1) * period
		run := min(cost, quota-q.used, end-now)
		now += run
		q.used += run
		cost -= run
		if cost <= 0 {
			q.free = now
			return now
		}
		if now < end { // the quota is used up
			now = end
		}
	}
}

// patience is how long a client waits for an answer.
const patience = 10 * time.Second

// replay returns how many of the arrivals a queue answers within limit, when
// quota says how much CPU time there is per period at each moment.
func replay(in []arrival, cost, limit time.Duration, quota func(t time.Duration) time.Duration) int {
	var q queue
	met := 0
	for _, a := range in {
		if q.free-a.At > patience {
			continue
		}
		done := q.serve(a.At, time.Duration(float64(cost)*a.Size), quota(a.At))
		if done-a.At <= limit {
			met++
		}
	}
	return met
}
