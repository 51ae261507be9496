package analyzer

import (
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// arrival is how the spans of a workload arrive, by its sketches: how long after an interval all of
// them have come, and what came too late.
type arrival struct {
	// waits are the longest waits of this minute, which began at since, and of the one before.
	waits [2]time.Duration
	since time.Time
	// requests and late are the requests that counted and those that came too late, as
	// exponentially decaying sums over about half a minute. missing is the fraction of the latest
	// interval that was not waited for, [0, 1].
	requests, late, missing float64
	// The same sums: adjusted are requests whose spans say how many requests they stand for, clock
	// are spans whose sender has a wrong clock, and unserved are requests without a SERVER or
	// CONSUMER span.
	adjusted, clock, unserved float64
	// ahead is, by partition, what the newest sketch says of requests after its end.
	ahead []ahead
}

// ahead is what has arrived so far of the intervals after a sketch that ended at to.
type ahead struct {
	to    time.Time
	every time.Duration
	parts []trimtab.Part
}

const (
	// waitsFor is the least time for which a wait is remembered.
	waitsFor = time.Minute
	// mostLate is the fraction of requests that may be late or missing before the load from spans
	// counts as incomplete.
	mostLate = 0.05
	// arrivalMemory is the time constant of the decaying sums.
	arrivalMemory = 30 * time.Second
	// noticed is the delay of spans from which on a note reports it. fewLate and fewFlagged are the
	// fractions of requests up to which no note is made.
	noticed, fewLate, fewFlagged = 2 * time.Second, 0.01, 0.05
	// maxArrived is more than the number of requests of any workload; it keeps the sums finite.
	maxArrived = 1e15
)

// observe updates the sums with a sketch.
func (a *arrival) observe(s *trimtab.Sketch) {
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

// foretell keeps what a sketch says of requests after its end, if it counts them by the SLO's
// latency. There are the given number of partitions.
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

// newer returns the requests that have arrived so far after the newest sketches, without the
// interval that missed most; nil if there are too few, or no sketch came recently.
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

// fewNewer is the number of requests from which on a miss may be reported before its interval is
// closed.
const fewNewer = 5

// notes returns what is unusual about the spans of a workload, for people.
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

// wait returns how long after the end of an interval its spans have arrived.
func (a *arrival) wait() time.Duration { return max(a.waits[0], a.waits[1]) }

// complete returns the fraction of requests that count, [0, 1].
func (a *arrival) complete() float64 {
	if a.requests+a.late == 0 {
		return 1 - a.missing
	}
	return min(1-a.missing, a.requests/(a.requests+a.late))
}

// missingInput returns why the load from spans is incomplete, or nil if it is not.
func (a *arrival) missingInput() *trimtab.Held {
	if a.complete() >= 1-mostLate {
		return nil
	}
	return &trimtab.Held{Code: codes.HeldLate, Input: "load", Source: FromSpans,
		Text: fmt.Sprintf("spans of %.0f%% of the requests come later than analyzer.trace_timeout, and do not count", 100*(1-a.complete()))}
}
