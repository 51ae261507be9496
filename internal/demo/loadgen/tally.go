package loadgen

import (
	"sync"
	"time"

	"github.com/trimtab/trimtab/quantile"
)

// Result has the counts of one service's clients over some time.
type Result struct {
	Name string
	// Over is how long it was watched.
	Over time.Duration
	// Requests = OK + Slow + Failed + Shed.
	Requests int
	// OK were answered 200 within the SLO's latency; Slow were answered 200 later; Failed were
	// refused, broke or timed out; Shed were never sent, as too many were in flight.
	OK, Slow, Failed, Shed int
	// Latency holds seconds from the intended start. One that failed or was
	// shed counts as the time-out: its client never got an answer.
	Latency quantile.Histogram
}

// Attained returns OK / Requests, and false without requests.
func (r *Result) Attained() (float64, bool) {
	if r.Requests == 0 {
		return 0, false
	}
	return float64(r.OK) / float64(r.Requests), true
}

// Rate returns the requests per second.
func (r *Result) Rate() float64 {
	if r.Over <= 0 {
		return 0
	}
	return float64(r.Requests) / r.Over.Seconds()
}

// outcome is how one request ended.
type outcome int

const (
	answered outcome = iota
	failed
	shed
)

// tally counts the requests of one service, for the interval and in all.
type tally struct {
	name    string
	slo     time.Duration
	timeout time.Duration

	mu    sync.Mutex
	now   Result
	total Result
}

func (t *tally) add(how outcome, latency time.Duration) {
	if how != answered {
		latency = max(latency, t.timeout)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range []*Result{&t.now, &t.total} {
		r.Requests++
		r.Latency.Add(latency.Seconds(), 1)
		switch {
		case how == failed:
			r.Failed++
		case how == shed:
			r.Shed++
		case latency <= t.slo:
			r.OK++
		default:
			r.Slow++
		}
	}
}

// interval returns the counts since the last call.
func (t *tally) interval(over time.Duration) Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.now
	r.Name, r.Over = t.name, over
	t.now = Result{}
	return r
}

func (t *tally) all(over time.Duration) Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.total
	r.Latency = *t.total.Latency.Clone()
	r.Name, r.Over = t.name, over
	return r
}
