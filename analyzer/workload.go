package analyzer

import (
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/report"
	"github.com/trimtab/trimtab/quantity"
)

const (
	// maxOpen is the largest number of open intervals of one workload after a tick, maxStirred that
	// between two ticks, maxParts the largest number of sketches in one.
	maxOpen, maxStirred, maxParts = 64, 512, 4096
	// patience is how many reports in a row are ignored because the allocation changed. If it
	// changes all the time, there are no others to learn from.
	patience = 4
)

// workload is the state of one workload. Its parts do not know each other.
type workload struct {
	config    *Config
	spec      *Workload
	intervals intervals
	samples   samples
	held      allocation
	curves    curves
	expected  expected
	queueing  queueing
	recovery  recovery
	tail      tail
	counters  counters
	remarks   remarks
	memories  memories
	grants    grants
	last      report.Report // the latest report
	// publishedAt is when the last estimate was sent, publishedHold and publishedFallback its hold and its fallback.
	publishedAt       time.Time
	publishedHold     *trimtab.Held
	publishedFallback string
	// app is the application that the workload belongs to, or nil. member is its number in
	// app.members, from 1; 0: it is not a member.
	app    *application
	member int
	// observed sums up the requests of a workload without an SLO of its own; nil: it has one.
	observed *observed
}

func newWorkload(c *Config, b beside, of Workload) *workload {
	w := &workload{config: c, spec: &of, intervals: intervals{config: c, spec: &of}, samples: newSamples(c, &of),
		held: allocation{History: c.history(of.Resource), spec: &of}, curves: curves{config: c, spec: &of},
		expected: expected{config: c, spec: &of}, tail: tail{config: c, spec: &of, beside: b}}
	if of.Observe {
		w.observed = &observed{}
	}
	w.begin()
	return w
}

// begin creates new learners and a new forecaster.
func (w *workload) begin() {
	w.tail.begin()
	w.queueing = newQueueing(w.spec)
	w.curves.begin()
	w.expected.begin()
}

func (w *workload) observeSample(s *trimtab.Sample, c *counts) {
	if s.Host != "" || s.Instance != "" {
		if !w.samples.join.Observe(s) {
			c.overflow++
		}
		return
	}
	if s.Missing == "" && s.Time.After(w.samples.wholes[s.Quantity]) {
		w.samples.wholes[s.Quantity] = s.Time
	}
	w.observeWhole(s, c)
}

// observeWhole stores a sample of the whole workload.
func (w *workload) observeWhole(s *trimtab.Sample, c *counts) {
	if !w.samples.observe(s) {
		return
	}
	if s.Quantity == quantity.Usage || kind(s.Quantity) >= 0 {
		w.queueing.observe(s)
	}
	w.intervals.observeSample(s, w.curves.proxy != nil, c)
}

// observeHolding stores what a holding says of the workload, and reports whether it is about it.
func (w *workload) observeHolding(h *trimtab.Holding, room *int, c *counts) bool {
	told := false
	w.grants.observe(h, w.spec.Name, w.config.Report, &w.counters)
	w.curves.fixed.observe(w.spec, h)
	for _, x := range w.histories() {
		c.overflow += x.Observe(h, w.spec.Name, room)
		also := x.Knows(h.Key())
		told = told || also
	}
	return told
}

// histories returns the histories of its resources.
func (w *workload) histories() []*report.History {
	var all []*report.History
	if w.spec.Resource != "" {
		all = append(all, &w.held.History)
	}
	for _, a := range w.curves.axes {
		all = append(all, &a.held)
	}
	return all
}

// tick closes the intervals that are due, and returns an estimate if there is news, or nil.
func (w *workload) tick(now time.Time, c *counts) *trimtab.Estimate {
	if w.samples.since.IsZero() {
		w.samples.since = now
	}
	w.intervals.reopen(now)
	w.samples.gather(now, &w.held.History, func(s *trimtab.Sample) { w.observeWhole(s, c) })
	due := w.intervals.due(now, w.collected(), c)
	for range due {
		v, missing := w.intervals.next()
		w.expected.skip(missing)
		w.close(v, c)
	}
	hold := w.hold(now)
	in := w.standIn(now, hold)
	same := alike(hold, w.publishedHold) && in.name == w.publishedFallback
	if due <= 0 && w.pressed(now) {
		return w.estimate(now, hold, in)
	}
	if due <= 0 && (same && now.Sub(w.publishedAt) < w.config.Round || hold == nil && in.name == "" && !w.spec.MemoryAlone) {
		return nil
	}
	w.publishedAt, w.publishedHold, w.publishedFallback = now, hold, in.name
	return w.estimate(now, hold, in)
}

// collected returns how long spans take to arrive, because their senders collect them.
func (w *workload) collected() time.Duration {
	if !w.spec.bySpans() {
		return 0
	}
	return w.samples.arrival.wait()
}

// close makes the report of interval v, and teaches learner and forecaster with it.
func (w *workload) close(v *interval, c *counts) {
	end := w.intervals.end(v)
	r := report.Report{At: end}
	s, seen := v.sketches.Merge(w.config.Partitions, w.config.Report, w.spec.SLO.Latency)
	if seen {
		w.queueing.answered(end.Add(-w.config.Report), end, s.Served(), false)
		r.Refused = perSecond(s.Refused, w.config.Report)
		answered := s.Load
		s.Load = w.expected.smooth(v.number, s)
		if w.queueing.model != nil {
			var late bool
			if s.Load, late = w.queueing.comes(v.number, &s, answered, w.config.Report); late && answered > s.Load*(1-report.Small) {
				r.Aside = "backlog" // it works off a backlog
			}
		}
	}
	if s.Lost {
		c.incomplete++
	}
	if w.curves.revise(v, end) {
		c.versions++
	}
	stale := w.samples.staleAfter(quantity.Load)
	w.samples.join.Serve(v.sketches, &s, &w.held.History, end.Add(-w.config.Report), end, stale)
	w.held.loads = w.samples.join.Known(&w.held.History, end, stale)
	w.samples.reportLoad(&r, s, seen)
	w.reportPerformance(&r, v, s, seen)
	w.reportAllocation(&r, end)
	w.curves.fixed.mix(&r, w.config.Report)
	coming := w.coming(&r)
	w.curves.report(&r, end, w.held.loads)
	if seen {
		r.Latency, r.Slowest = quantiles(&s.Latency), s.Slowest
		w.tail.observe(end, &s)
		if w.observed != nil && r.Load != nil {
			w.observed.observe(end, w.config.Report, &s, *r.Load)
		}
	}
	if !w.expected.observe(coming) {
		c.refused++
	}
	w.recovery.observe(&r, &w.last, w.spec.Target, w.config)
	w.curves.teachProxy(&r, v.proxy, c)
	w.curves.teach(&r, &w.held, &w.queueing, w.samples.spare(&r), c)
	if w.app != nil {
		w.app.observe(w, &r, &s, c)
	}
	w.last = r
	w.samples.report(&r)
}
