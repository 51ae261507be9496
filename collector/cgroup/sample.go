package cgroup

import (
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/quantity"
)

// Reasons why a value is missing, in addition to those of package poll.
const (
	unlimited = "unlimited"
	idle      = "no period elapsed"
)

// Source is the source of all samples of this package.
const Source = "cgroup"

// Samples makes the three samples of one workload at wall time now: from two readings in order,
// or from one and the error that prevented the other.
func Samples(workload string, now time.Time, before, after *Reading, err error) []*trimtab.Sample {
	blank := func(q quantity.Quantity) *trimtab.Sample {
		return &trimtab.Sample{Workload: workload, Quantity: q, Source: Source, Time: now}
	}
	usage, throttled, allocation := blank(quantity.Usage), blank(quantity.Throttled), blank(quantity.Allocation)
	all := []*trimtab.Sample{usage, throttled, allocation}
	if err != nil {
		for _, s := range all {
			s.Missing = poll.WhyMissing(err)
		}
		return all
	}
	a := after.Quota.Amount()
	if m := after.Most; !a.Unlimited && m != (trimtab.Amount{}) && m.Less(a) {
		a = m // the least quota is in force; a group without its own shares a parent's with others
	}
	if a.Unlimited {
		allocation.Missing = unlimited
	} else {
		allocation.Value = a.Value
	}
	usage.Missing = incomparable(before, after)
	throttled.Missing = usage.Missing
	if usage.Missing != "" {
		return all
	}
	window := after.At - before.At
	usage.Window, throttled.Window = trimtab.SecondsOf(window), trimtab.SecondsOf(window)
	usage.Value = (after.Used - before.Used).Seconds() / window.Seconds()
	own, above := after.Periods-before.Periods, after.Above-before.Above
	switch {
	case after.By != before.By:
		throttled.Missing = poll.First // of these counters
	case own == 0 && above == 0:
		// Throttled by a quota that is not visible here, such as that of a container's group.
		if throttled.Value = stood(before, after); throttled.Value == 0 {
			throttled.Missing = idle
		}
	default:
		throttled.Value = max(part(after.Throttled-before.Throttled, own), part(after.Stopped-before.Stopped, above))
	}
	return all
}

// stood returns the share of the time in which the group was throttled. With D the mean number of
// CPUs on which it was stopped, and u its usage in cores, it ran on D + u CPUs at a time:
//
//	stood = D / (D + u)
func stood(before, after *Reading) float64 {
	if before.Local == nil || after.Local == nil || *after.Local <= *before.Local {
		return 0
	}
	stopped, used := (*after.Local - *before.Local).Seconds(), (after.Used - before.Used).Seconds()
	return stopped / (stopped + used)
}

// part returns n / of, at most 1; 0 if of is 0.
func part(n, of uint64) float64 { return min(1, float64(n)/float64(max(of, 1))) }

// incomparable says why the difference of two readings means nothing, or "".
func incomparable(before, after *Reading) string {
	switch {
	case before == nil:
		return poll.First
	case after.Used < before.Used, after.At <= before.At:
		return poll.Reset
	case after.Periods < before.Periods, after.Throttled < before.Throttled,
		after.By == before.By && (after.Above < before.Above || after.Stopped < before.Stopped):
		return poll.Reset
	}
	return ""
}
