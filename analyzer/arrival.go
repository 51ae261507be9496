package analyzer

import (
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
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
	// adjusted are the requests of the last half minute whose spans tell how many they
	// stand for, clock the spans whose sender has a wrong clock, unserved the requests that
	// no SERVER or CONSUMER span tells.
	adjusted, clock, unserved float64
	// ahead is what the newest sketch of each partition tells of the time after it.
	ahead []ahead
}

// ahead is what has come of the requests in the intervals after a sketch that ends at to.
type ahead struct {
	to    time.Time
	every time.Duration
	parts []trimtab.Part
}

const (
	// waitsFor is how long a wait is remembered at least.
	waitsFor = time.Minute
	// mostLate is the share of requests that may come too late, or be missing, before the
	// load is not believed to be all of it.
	mostLate = 0.05
	// arrivalMemory is the time over which the share of late requests is averaged.
	arrivalMemory = 30 * time.Second
	// noticed is the delay of spans from which on it is told; fewLate and fewFlagged the
	// shares of requests up to which nothing is.
	noticed, fewLate, fewFlagged = 2 * time.Second, 0.01, 0.05
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
	a.clock = min(a.clock*keep+float64(s.Flagged["clock"]), maxArrived)
	a.adjusted = min(a.adjusted*keep+s.Adjusted, maxArrived)
	a.unserved = min(a.unserved*keep+s.Unserved, maxArrived)
}

// foretell keeps what a sketch tells of the requests after it, where they are judged by the
// latency of the SLO. There are at most so many partitions.
func (a *arrival) foretell(s *trimtab.Sketch, latency time.Duration, partitions int) {
	if latency <= 0 || s.Threshold != trimtab.SecondsOf(latency) {
		return
	}
	if a.ahead == nil {
		a.ahead = make([]ahead, partitions)
	}
	if n := &a.ahead[s.Partition]; s.To.After(n.to) {
		*n = ahead{s.To, s.To.Sub(s.From), s.Newer}
	}
}

// newer returns what has come, by now, of the requests after the newest sketches, but for
// the interval that missed most; nil: too few to tell, or no sketch came lately.
func (a *arrival) newer(now time.Time) *trimtab.Part {
	var all, worst trimtab.Part
	byEnd := map[time.Time]trimtab.Part{}
	for _, n := range a.ahead {
		if now.Sub(n.to) > a.wait()+noticed {
			continue
		}
		for k, p := range n.parts {
			end := n.to.Add(time.Duration(k) * n.every)
			sum := byEnd[end]
			byEnd[end] = trimtab.Part{Requests: sum.Requests + p.Requests, Under: sum.Under + p.Under}
		}
	}
	for _, p := range byEnd {
		all.Requests, all.Under = all.Requests+p.Requests, all.Under+p.Under
		if p.Requests-p.Under > worst.Requests-worst.Under {
			worst = p
		}
	}
	all.Requests, all.Under = all.Requests-worst.Requests, math.Max(0, all.Under-worst.Under)
	if all.Requests < fewNewer {
		return nil
	}
	all.Under = math.Min(all.Under, all.Requests)
	return &all
}

// fewNewer is how many requests tell of a miss before its time.
const fewNewer = 5

// notes say what is unexpected of the spans of a workload.
func (a *arrival) notes() (all []string) {
	if w := a.wait(); w > noticed {
		all = append(all, fmt.Sprintf("spans come up to %v late", w.Round(time.Second)))
	}
	if c := a.complete(); c < 1-fewLate {
		all = append(all, fmt.Sprintf("%.0f%% of the requests come too late to count", 100*(1-c)))
	}
	if share := a.clock / max(a.requests, 1); share > fewFlagged {
		all = append(all, "the clock of a sender is wrong: its times are corrected")
	}
	if share := a.unserved / max(a.requests, 1); share > fewFlagged {
		all = append(all, fmt.Sprintf("%.0f%% of the requests are spans that serve nothing by their kind: background work, or a sender that sets no kind", 100*min(share, 1)))
	}
	if share := a.adjusted / max(a.requests, 1); share > fewFlagged && share < 1-fewFlagged {
		all = append(all, fmt.Sprintf("senders sample unequally: %.0f%% of the requests come from some that do not say how, and may stand for more", 100*(1-share)))
	}
	return all
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
	return &trimtab.Held{Code: codes.HeldLate, Input: "load", Source: FromSpans,
		Text: fmt.Sprintf("spans of %.0f%% of the requests come later than analyzer.trace_timeout, and do not count", 100*(1-a.complete()))}
}
