package perf

import (
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/collector/waits"
	"github.com/trimtab/trimtab/quantity"
)

// sourceDelay is the source of the samples of run queues.
const sourceDelay = "schedstat"

// Idle is the reason for a missing value of a group that did nothing.
const Idle = "nothing ran"

// Other reasons why a value is missing, in addition to those of package poll.
const (
	notCounted  = "not counted by this machine"
	multiplexed = "counted for too little of the time"
	elsewhere   = "its tasks are in another group of the hierarchy that is counted"
	tooMany     = "more groups or threads than can be counted"
	unanswered  = "the process that counts did not answer"
)

// reasons returns the reasons that the counting process gives for missing values.
func reasons() []string {
	return []string{poll.Absent, poll.Unreadable, poll.First, poll.Reset, notCounted, multiplexed, tooMany}
}

// value is a number, or why there is none.
type value struct {
	v       float64
	missing string
}

// measured are the values of one group in one interval, by quantity.
type measured struct {
	q quantity.Quantity
	value
}

// samples makes the samples of one group, or of the host.
func samples(g poll.Group, i interval, waits value, window time.Duration) (all []*trimtab.Sample) {
	sample := g.Sample
	if g == host() {
		sample = func(q quantity.Quantity) *trimtab.Sample { return poll.OfHost(q, "") }
	}
	add := func(m measured, window time.Duration) *trimtab.Sample {
		s := sample(m.q)
		s.Value, s.Missing, s.Window = m.v, m.missing, trimtab.SecondsOf(window)
		all = append(all, s)
		return s
	}
	for _, m := range values(i, g == host()) {
		add(m, i.Window)
	}
	if g != host() {
		add(measured{quantity.RunDelay, waits}, window).Source = sourceDelay
	}
	return all
}

// values returns the values of one interval. A whole host has no task clock.
func values(i interval, host bool) []measured {
	window := i.Window.Seconds()
	soft := func(at int) value {
		switch {
		case i.Software.Missing != "":
			return value{missing: i.Software.Missing}
		case at >= len(i.Software.Counts):
			return value{missing: notCounted}
		case window <= 0: // time went back
			return value{missing: poll.Reset}
		}
		return value{v: i.Software.Counts[at] / window}
	}
	out := []measured{
		{quantity.CPI, ratio(i, cycles, 1)},
		{quantity.MPKI, ratio(i, misses, 1000)},
		{quantity.RPKI, ratio(i, references, 1000)},
		{quantity.ContextSwitches, soft(contextSwitches)},
		{quantity.PageFaults, soft(pageFaults)},
		{quantity.Migrations, soft(migrations)},
	}
	if !host { // for a whole host the clock just measures time
		clock := soft(taskClock)
		clock.v /= float64(time.Second) // it counts nanoseconds
		out = append(out, measured{quantity.TaskClock, clock})
	}
	return out
}

// ratio returns times · count of an event / instructions.
func ratio(i interval, event int, times float64) value {
	h := i.Hardware
	switch {
	case h.Missing != "":
		return value{missing: h.Missing}
	case event >= len(h.Counts):
		return value{missing: notCounted}
	case h.Counts[instructions] > 0:
		return value{v: times * h.Counts[event] / h.Counts[instructions]}
	case i.Software.Missing == "" && len(i.Software.Counts) > taskClock && i.Software.Counts[taskClock] > 0:
		return value{missing: notCounted} // the group ran, and no instruction was counted
	}
	return value{missing: Idle}
}

// delay is the share of the time that threads could have run in which they waited.
func delay(before, after map[int]waits.Thread) value {
	if before == nil {
		return value{missing: poll.First}
	}
	ran, waited := waits.Between(before, after)
	if ran+waited <= 0 {
		return value{missing: Idle}
	}
	return value{v: waited / (ran + waited)}
}
