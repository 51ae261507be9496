package analyzer

import (
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
)

// arrival is what the sketches of a workload tell of the way of its spans: how long
// after an interval all of it has come, and what came later than is waited for.
type arrival struct {
	// waits are the longest of this and of the last minute, which began at since.
	waits [2]time.Duration
	since time.Time
	// requests and late are those that counted, and those that came too late to, of the
	// last half minute, fading. missing is the share of the latest interval that was not
	// waited for, [0, 1].
	requests, late, missing float64
}

const (
	// waitsFor is how long a wait is remembered at least.
	waitsFor = time.Minute
	// mostLate is the share of requests that may come too late, or be missing, before the
	// load is not believed to be all of it.
	mostLate = 0.05
	// arrivalMemory is the time over which the share of late requests is averaged.
	arrivalMemory = 30 * time.Second
	// maxArrived is more requests than a workload has, so that sums stay finite.
	maxArrived = 1e15
)

// take enters a sketch.
func (a *arrival) take(s *trimtab.Sketch) {
	if s.To.Sub(a.since) > waitsFor {
		a.waits, a.since = [2]time.Duration{0, a.waits[0]}, s.To
	}
	a.waits[0] = max(a.waits[0], s.Wait.Duration())
	keep := math.Exp(-s.To.Sub(s.From).Seconds() / arrivalMemory.Seconds())
	a.requests, a.late = min(a.requests*keep+s.Requests, maxArrived), min(a.late*keep+s.Late, maxArrived)
	a.missing = s.Missing
}

// wait is how long after its end an interval is told.
func (a *arrival) wait() time.Duration { return max(a.waits[0], a.waits[1]) }

// complete is the share of the requests that counts, [0, 1].
func (a *arrival) complete() float64 {
	if a.requests+a.late == 0 {
		return 1 - a.missing
	}
	return min(1-a.missing, a.requests/(a.requests+a.late))
}

// lacks says why the load by spans is not all of it; nil: it is.
func (a *arrival) lacks() *trimtab.Held {
	if a.complete() >= 1-mostLate {
		return nil
	}
	return &trimtab.Held{Code: trimtab.HeldLate, Input: "load", Source: FromSpans,
		Text: fmt.Sprintf("spans of %.0f%% of the requests come later than analyzer.trace_timeout, and do not count", 100*(1-a.complete()))}
}
