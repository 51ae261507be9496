package main

import (
	"time"

	"github.com/trimtab/trimtab/analyzer/workingset"
	"github.com/trimtab/trimtab/sim/autoscale"
)

// history is how many days of use the rules are shown: what they watch in production, from the
// readings of days that took seconds.
const history = 8

// dated is a working set, in bytes, at a time.
type dated struct {
	at    time.Time
	bytes float64
}

// stretch returns the recorded days in turn, each stretched to 24 hours, until there are so many; the
// last one ends at end.
func stretch(days [][]reading, count int, end time.Time) (out []dated) {
	begin := end.Add(-time.Duration(count) * 24 * time.Hour)
	for k := range count {
		d := days[k%len(days)]
		whole := max(d[len(d)-1].At, 1)
		for _, r := range d {
			at := begin.Add(time.Duration((float64(k) + r.At.Seconds()/whole.Seconds()) * float64(24*time.Hour)))
			out = append(out, dated{at, r.Working})
		}
	}
	return out
}

// peak is the highest working set of the days.
func peak(days [][]reading) (most float64) {
	for _, d := range days {
		for _, r := range d {
			most = max(most, r.Working)
		}
	}
	return most
}

// vpa is the limit that VPA's recommender asks for after the days.
func vpa(days [][]reading) float64 {
	v := autoscale.NewVPA()
	for _, r := range stretch(days, history, time.Unix(1e9, 0)) {
		v.CPU(r.at, 1) // without samples of CPU it recommends nothing
		v.Memory(r.at, r.bytes)
	}
	_, memory, _ := v.Recommend()
	return memory.Target
}

// replayed is what a rule gave in a replay of the recorded days.
type replayed struct {
	// Given is the mean limit in bytes, Overruns are the readings above the limit set before them.
	Given    float64
	Overruns int
}

// replay plays the recorded days, stretched, as the day after eight like them: with VPA's recommendation
// and with trimtab's need and margin, looked at with each reading, as production does within seconds.
func replay(days [][]reading) (other, ours replayed) {
	all := stretch(days, history+1, time.Unix(1e9, 0))
	last := len(all) - len(days[history%len(days)])
	v, l := autoscale.NewVPA(), &workingset.Learner{}
	judge := func(r *replayed, limit, use float64) {
		r.Given += limit / float64(len(all)-last)
		if use > limit {
			r.Overruns++
		}
	}
	for i, x := range all {
		if i >= last {
			_, memory, _ := v.Recommend()
			judge(&other, memory.Target, x.bytes)
			n, _ := l.Need(x.at)
			judge(&ours, n.Limit*(1+workingset.Margin), x.bytes)
		}
		v.CPU(x.at, 1) // without samples of CPU it recommends nothing
		v.Memory(x.at, x.bytes)
		l.Take(x.at, x.bytes)
	}
	return other, ours
}

// learnt is what trimtab's learner knows after the days.
func learnt(days [][]reading, end time.Time) *workingset.Learner {
	l := &workingset.Learner{}
	for _, r := range stretch(days, history, end) {
		l.Take(r.at, r.bytes)
	}
	return l
}
