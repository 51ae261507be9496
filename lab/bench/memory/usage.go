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

// learnt is what trimtab's learner knows after the days.
func learnt(days [][]reading, end time.Time) *workingset.Learner {
	l := &workingset.Learner{}
	for _, r := range stretch(days, history, end) {
		l.Take(r.at, r.bytes)
	}
	return l
}
