package analyzer

import (
	"cmp"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/report"
	"github.com/trimtab/trimtab/quantity"
)

// interval has what was measured in the interval of one report. Number n covers [n Report, (n+1)
// Report) since 1970.
type interval struct {
	number   int64
	sketches report.Sketches
	// performance is the latest sample of the performance; nil: none.
	performance *trimtab.Sample
	// proxy is the latest sample of the proxy for it; nil: none.
	proxy *trimtab.Sample
	// load: a load sample fell into the interval.
	load bool
	// arrived is the first tick after the last arrival. stirred: something has arrived since the
	// last tick.
	arrived time.Time
	stirred bool
}

// newer reports whether sample a replaces b: if it is later, or, for equal times, by an arbitrary
// but fixed order.
func newer(a, b *trimtab.Sample) bool {
	return b == nil || cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Value, b.Value),
		cmp.Compare(a.Requests, b.Requests)) > 0
}

// intervals has the open intervals of a workload.
type intervals struct {
	config *Config
	spec   *Workload
	open   []*interval // in order of number
	// closed is the number of the last closed interval, if begun.
	closed int64
	begun  bool
}

// number returns the number of the interval that t falls into.
func (x *intervals) number(t time.Time) int64 {
	n, d := t.UnixNano(), int64(x.config.Report)
	q := n / d
	if n%d < 0 {
		q--
	}
	return q
}

// at returns the open interval n, or nil if it is closed already or too many are open.
func (x *intervals) at(n int64) *interval {
	if x.begun && n <= x.closed {
		return nil
	}
	i, found := slices.BinarySearchFunc(x.open, n, func(v *interval, n int64) int { return cmp.Compare(v.number, n) })
	if !found {
		if len(x.open) >= maxStirred {
			return nil
		}
		x.open = slices.Insert(x.open, i, &interval{number: n})
	}
	v := x.open[i]
	v.stirred = true
	return v
}

// observeSketch adds a sketch to its interval.
func (x *intervals) observeSketch(s *trimtab.Sketch, c *counts) {
	v := x.at(x.number(s.From.Add(s.To.Sub(s.From) / 2)))
	switch {
	case v == nil:
		c.late++
	case len(v.sketches) >= maxParts:
		c.overflow++
	case v.sketches.Add(s):
		c.duplicates++
	}
}

// observeSample adds a sample of the workload to its interval, if reports use its quantity.
func (x *intervals) observeSample(s *trimtab.Sample, proxy bool, c *counts) {
	if !(s.Quantity == quantity.Performance && x.spec.PerformanceFrom == FromPrometheus ||
		s.Quantity == quantity.Load && x.spec.LoadFrom == FromPrometheus || s.Quantity == quantity.Proxy && proxy) {
		return
	}
	// A sample covers the time before it.
	v := x.at(x.number(s.Time.Add(-1)))
	switch {
	case v == nil:
		c.late++
	case s.Quantity == quantity.Load:
		v.load = true
	case s.Quantity == quantity.Proxy:
		if newer(s, v.proxy) {
			v.proxy = s
		}
	case newer(s, v.performance):
		v.performance = s
	}
}

// reopen corrects a closed interval in the future, which only a damaged or foreign snapshot can
// cause.
func (x *intervals) reopen(now time.Time) {
	if x.begun && x.closed > x.number(now.Add(x.config.Skew)) {
		x.closed = x.number(now) - 1
	}
}

// next closes the first open interval, and returns the number of intervals before it without any
// value.
func (x *intervals) next() (v *interval, missing int) {
	v = x.open[0]
	x.open = slices.Delete(x.open, 0, 1)
	if x.begun {
		missing = int(v.number - x.closed - 1)
	}
	x.closed, x.begun = v.number, true
	return v, missing
}

// due returns how many of the open intervals, from the first, are to be closed: all up to the last
// that is complete or has waited long enough. collected is how long spans take to arrive.
func (x *intervals) due(now time.Time, collected time.Duration, c *counts) int {
	n := 0
	for i, v := range x.open {
		if v.stirred {
			v.arrived, v.stirred = now, false
		}
		if x.complete(v, now) || x.waited(v, now, collected, i+1 < len(x.open)) {
			n = i + 1
		}
	}
	if excess := len(x.open) - maxOpen; excess > n {
		c.overflow += uint64(excess - n)
		n = excess
	}
	return n
}

func (x *intervals) end(v *interval) time.Time {
	return time.Unix(0, (v.number+1)*int64(x.config.Report)).UTC()
}

// complete reports whether everything expected for v has arrived.
func (x *intervals) complete(v *interval, now time.Time) bool {
	present, whole := v.sketches.Cells(x.config.Partitions, x.config.Report)
	return (!x.spec.bySpans() || present > 0 && present >= whole) &&
		(x.spec.PerformanceFrom == FromSpans || v.performance != nil) &&
		(x.spec.LoadFrom == FromSpans || v.load) && !now.Before(x.end(v))
}

// waited reports whether v has waited long enough: its grace has passed by our clock, and nothing
// has arrived for as long, unless later intervals show that the senders have moved on.
func (x *intervals) waited(v *interval, now time.Time, collected time.Duration, later bool) bool {
	wait := x.config.Grace
	if now.Before(x.end(v).Add(wait + collected)) {
		return false
	}
	if len(v.sketches) > 0 && !later {
		if each := v.sketches[0].To.Sub(v.sketches[0].From); each < x.config.Report {
			wait += each
		}
	}
	return now.Sub(v.arrived) >= wait
}
