package perf

import (
	"encoding/binary"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
)

// reading is the values of a group of counters on one CPU.
type reading struct {
	// enabled is the time for which the events should have been counted, running the time for which
	// they were, in ns; for a control group, only while one of its tasks ran.
	enabled, running uint64
	counts           []uint64
}

// header is the number of values before the counts.
const header = 3

// parseReading reads what read(2) gave of a group of n counters. Its form, of numbers of
// 8 bytes in the machine's order (perf_event_open(2), PERF_FORMAT_GROUP):
//
//	nr, time_enabled, time_running, value of the first, … of the last
func parseReading(b []byte, n int) (reading, error) {
	if len(b) != 8*(header+n) {
		return reading{}, trimtab.Invalidf("%d bytes of %d counters: want %d", len(b), n, 8*(header+n))
	}
	at := func(i int) uint64 { return binary.NativeEndian.Uint64(b[8*i:]) }
	if at(0) != uint64(n) {
		return reading{}, trimtab.Invalidf("%d counters: want %d", at(0), n)
	}
	r := reading{enabled: at(1), running: at(2), counts: make([]uint64, n)}
	for i := range r.counts {
		r.counts[i] = at(header + i)
	}
	return r, nil
}

// leastCounted is the share of the time in which a counter must have been running: scaling up by
// more than 10 amplifies mostly noise.
const leastCounted = 0.1

// set has the increase of one group of events' counters in an interval, over all CPUs, or why it is
// unknown.
type set struct {
	Counts  []float64 `json:"counts,omitempty"`
	Missing string    `json:"missing,omitempty"`
}

// rise compares two readings of n counters on the same CPUs.
//
//	Δ count = Σ over CPUs of Δ value · Δ enabled / Δ running
//
// A CPU on which they never ran counts as the mean of the others.
func rise(before, after []reading, n int) set {
	if len(before) == 0 || len(before) != len(after) {
		return set{Missing: poll.First}
	}
	out := set{Counts: make([]float64, n)}
	var enabled, running, covered float64
	for cpu := range after {
		was, is := before[cpu], after[cpu]
		if len(was.counts) != n || len(is.counts) != n {
			return set{Missing: poll.First}
		}
		if is.enabled < was.enabled || is.running < was.running {
			return set{Missing: poll.Reset}
		}
		on, ran := float64(is.enabled-was.enabled), float64(is.running-was.running)
		enabled, running = enabled+on, running+min(ran, on)
		factor := 0.0
		if ran > 0 {
			factor, covered = max(1, on/ran), covered+on
		}
		for i := range n {
			if is.counts[i] < was.counts[i] {
				return set{Missing: poll.Reset}
			}
			out.Counts[i] += float64(is.counts[i]-was.counts[i]) * factor
		}
	}
	switch {
	case enabled == 0:
		return out // no task of the group ran, so nothing was counted
	case running < leastCounted*enabled || covered == 0:
		return set{Missing: multiplexed}
	}
	for i := range out.Counts {
		out.Counts[i] *= enabled / covered
	}
	return out
}

// interval has the counts of one control group since the last answer.
type interval struct {
	Window   time.Duration `json:"window_ns"`
	Software set           `json:"software"`
	Hardware set           `json:"hardware"`
}
