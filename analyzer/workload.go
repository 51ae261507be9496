package analyzer

import (
	"cmp"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/contribution"
	"github.com/trimtab/trimtab/analyzer/forecast"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/report"
)

const (
	// maxOpen bounds the intervals of one workload that wait at a tick,
	// maxStirred those between two ticks, maxParts the sketches in one.
	maxOpen, maxStirred, maxParts = 64, 512, 4096
	// patience is how many reports in a row are set aside for changes of the
	// allocation. When it changes all the time, transients are all there is.
	patience = 4
)

// workload is the state of one workload.
type workload struct {
	Workload
	config     *Config
	learner    learn.Learner       // nil: no curve
	proxy      learn.Learner       // of Fallback.Proxy; nil: none
	forecaster forecast.Forecaster // nil: none

	open []*interval // in order of number
	// closed is the number of the last closed interval.
	closed int64
	begun  bool
	// samples holds the latest sample of each quantity that has a value, and
	// missing the latest without.
	samples, missing map[trimtab.Quantity]*trimtab.Sample
	// paces are how often those come.
	paces map[trimtab.Quantity]*pace
	held  report.History
	axes  []*axis // further resources
	// join makes samples out of those of instances, unless there are some of the
	// workload, wholes says of when; loads are those of its instances, nil: not known.
	join     report.Join
	arrival  arrival
	counters counters
	remarks  remarks
	grants   grants
	fixed    fixed
	wholes   map[trimtab.Quantity]time.Time
	loads    report.Loads
	// disturbed counts reports set aside in a row for changes of those.
	disturbed int

	last report.Report // the latest report
	// since is when the workload was first waited for.
	since time.Time
	// told is when the last estimate went out, and toldHold why it was held.
	told     time.Time
	toldHold *trimtab.Held
	changes  int // learner changes already counted
	// versions are what the curve was learnt from.
	versions versions
	// recent holds the rates of the latest intervals in a row, oldest first.
	recent []rate
	// transients counts reports set aside in a row.
	transients int
	recovery   recovery
	queueing   queueing
	// sawLoad and sawPerformance are when each was last true; taught, when the
	// performance was that last taught the curve.
	sawLoad, sawPerformance, taught time.Time
	toldFallback                    string
	// app is the application that it belongs to, member its place in it, from
	// 1; nil and 0: none.
	app    *application
	member int
	// live says what each component adds to the tail; nil: no latency SLO. news is
	// what it said of the latest report, until it is told.
	live *contribution.Live
	news *trimtab.Contributions
	// observed counts the requests of a discovered workload; nil: it is configured.
	observed *observed
	// beside: see [Analyzer].
	beside beside
}

func newWorkload(c *Config, b beside, w Workload) *workload {
	out := &workload{Workload: w, config: c, beside: b,
		samples: map[trimtab.Quantity]*trimtab.Sample{}, missing: map[trimtab.Quantity]*trimtab.Sample{},
		paces: map[trimtab.Quantity]*pace{}, wholes: map[trimtab.Quantity]time.Time{}, held: c.history(w.Resource)}
	out.begin()
	return out
}

// begin makes the learner and the forecaster anew.
func (w *workload) begin() {
	w.beginLive()
	w.queueing = newQueueing(&w.Workload)
	if w.Learner != nil && w.Max > 0 && w.measured() {
		w.learner = w.Learner()
	}
	w.beginAxes()
	w.fixed = fixed{}
	if w.Learner != nil && w.Max > 0 && w.Fallback.Proxy {
		w.proxy = w.Learner()
	}
	if w.Forecaster != nil {
		w.forecaster = w.Forecaster()
	}
}

// number returns the interval that t falls into.
func (w *workload) number(t time.Time) int64 {
	n, d := t.UnixNano(), int64(w.config.Report)
	q := n / d
	if n%d < 0 {
		q--
	}
	return q
}

// at returns the open interval n, or nil when it is closed already, or too
// many are open.
func (w *workload) at(n int64) *interval {
	if w.begun && n <= w.closed {
		return nil
	}
	i, found := slices.BinarySearchFunc(w.open, n, func(v *interval, n int64) int { return cmp.Compare(v.number, n) })
	if !found {
		if len(w.open) >= maxStirred {
			return nil
		}
		w.open = slices.Insert(w.open, i, &interval{number: n})
	}
	v := w.open[i]
	v.stirred = true
	return v
}

func (w *workload) takeSketch(s *trimtab.Sketch, c *counts) {
	v := w.at(w.number(s.From.Add(s.To.Sub(s.From) / 2)))
	switch {
	case v == nil:
		c.late++
	case len(v.sketches) >= maxParts:
		c.overflow++
	case v.sketches.Add(s):
		c.duplicates++
	}
}

func (w *workload) takeSample(s *trimtab.Sample, c *counts) {
	if s.Host != "" || s.Instance != "" {
		if !w.join.Take(s) {
			c.overflow++
		}
		return
	}
	if s.Missing == "" && s.Time.After(w.wholes[s.Quantity]) {
		w.wholes[s.Quantity] = s.Time
	}
	w.takeWhole(s, c)
}

// gather joins the samples of instances. Of what is also told of the workload they
// tell the shares alone.
func (w *workload) gather(now time.Time, c *counts) {
	if w.join.Idle() {
		return
	}
	give := func(s *trimtab.Sample) {
		if now.Sub(w.wholes[s.Quantity]) > w.staleAfter(s.Quantity) {
			s.Workload = w.Name
			w.takeWhole(s, c)
		}
	}
	w.join.Tick(now, &w.held, w.staleAfter, give)
	w.join.Lacking(now, &w.held, w.lateAfter, give)
}

// takeWhole keeps a sample of the workload.
func (w *workload) takeWhole(s *trimtab.Sample, c *counts) {
	if s.Missing != "" {
		if old := w.missing[s.Quantity]; old == nil || s.Time.After(old.Time) || s.Time.Equal(old.Time) && s.Missing > old.Missing {
			w.missing[s.Quantity] = s
		}
		return
	}
	w.pace(s.Quantity).take(s.Time, w.config.Report/2)
	if newer(s, w.samples[s.Quantity]) {
		w.samples[s.Quantity] = s
	}
	if s.Quantity == trimtab.Usage || kind(s.Quantity) >= 0 {
		w.queueing.take(s)
	}
	report := s.Quantity == trimtab.Performance && w.PerformanceFrom == FromPrometheus ||
		s.Quantity == trimtab.Load && w.LoadFrom == FromPrometheus || s.Quantity == trimtab.Proxy && w.proxy != nil
	if !report {
		return
	}
	// A sample speaks of the time before it.
	v := w.at(w.number(s.Time.Add(-1)))
	switch {
	case v == nil:
		c.late++
	case s.Quantity == trimtab.Load:
		v.load = true
	case s.Quantity == trimtab.Proxy:
		if newer(s, v.proxy) {
			v.proxy = s
		}
	case newer(s, v.performance):
		v.performance = s
	}
}

// elsewhere reports whether the configuration gives the workload to another host
// than this one; "" is none.
func (w *workload) elsewhere(host string) bool {
	return w.Host != "" && host != "" && w.Host != host
}

// takeHolding keeps what a holding says of the workload, and reports whether it says
// something of it.
func (w *workload) takeHolding(h *trimtab.Holding, room *int, c *counts) bool {
	told := false
	w.takeGrants(h)
	w.fixed.take(&w.Workload, h)
	for _, x := range w.histories() {
		c.overflow += x.Take(h, w.Name, room)
		also := x.Knows(h.Key())
		told = told || also
	}
	return told
}

// histories are those of its resources.
func (w *workload) histories() []*report.History {
	var all []*report.History
	if w.Resource != "" {
		all = append(all, &w.held)
	}
	for _, a := range w.axes {
		all = append(all, &a.held)
	}
	return all
}

// during returns the allocation in force over [from, to).
func (w *workload) during(from, to time.Time, settle time.Duration) report.InForce {
	return w.held.During(from, to, settle, w.loads)
}

// most is the largest allocation that the workload can have: that of its instances
// together, where there are several.
func (w *workload) most() float64 { return max(w.Max, w.held.Most(w.loads)) }

// tick closes what is due and returns an estimate when there is news.
func (w *workload) tick(now time.Time, c *counts) *trimtab.Estimate {
	if w.since.IsZero() {
		w.since = now
	}
	if w.begun && w.closed > w.number(now.Add(w.config.Skew)) {
		// Only a damaged or foreign snapshot closes our future.
		w.closed = w.number(now) - 1
	}
	w.gather(now, c)
	closed := false
	for n := w.due(now, c); n > 0; n-- {
		v := w.open[0]
		w.open = slices.Delete(w.open, 0, 1)
		if w.begun {
			w.skip(int(v.number - w.closed - 1))
		}
		w.closed, w.begun = v.number, true
		w.close(v, c)
		closed = true
	}
	hold := w.hold(now)
	in := w.standIn(now, hold)
	same := alike(hold, w.toldHold) && in.name == w.toldFallback
	if !closed && w.pressed(now) {
		return w.estimate(now, hold, in)
	}
	if !closed && (same && now.Sub(w.told) < w.config.Round || hold == nil && in.name == "") {
		return nil
	}
	w.told, w.toldHold, w.toldFallback = now, hold, in.name
	return w.estimate(now, hold, in)
}

// due returns how many of the open intervals, from the first, are to be
// closed: all up to the last that is complete or has waited long enough.
func (w *workload) due(now time.Time, c *counts) int {
	n := 0
	for i, v := range w.open {
		if v.stirred {
			v.arrived, v.stirred = now, false
		}
		if w.complete(v, now) || w.waited(v, now, i+1 < len(w.open)) {
			n = i + 1
		}
	}
	if excess := len(w.open) - maxOpen; excess > n {
		c.overflow += uint64(excess - n)
		n = excess
	}
	return n
}

func (w *workload) end(v *interval) time.Time {
	return time.Unix(0, (v.number+1)*int64(w.config.Report)).UTC()
}

// bySpans reports whether spans tell load or performance.
func (w *workload) bySpans() bool { return w.LoadFrom == FromSpans || w.PerformanceFrom == FromSpans }

// collected is how long spans are under way, for which their senders collect them.
func (w *workload) collected() time.Duration {
	if !w.bySpans() {
		return 0
	}
	return w.arrival.wait()
}

// complete reports whether nothing more can come for v.
func (w *workload) complete(v *interval, now time.Time) bool {
	present, whole := v.sketches.Cells(w.config.Partitions, w.config.Report)
	return (!w.bySpans() || present > 0 && present >= whole) &&
		(w.PerformanceFrom == FromSpans || v.performance != nil) &&
		(w.LoadFrom == FromSpans || v.load) && !now.Before(w.end(v))
}

// waited reports whether v is past its grace: ours by the clock, and quiet
// for as long, unless later intervals show that the senders went on.
func (w *workload) waited(v *interval, now time.Time, later bool) bool {
	wait := w.config.Grace
	if now.Before(w.end(v).Add(wait + w.collected())) {
		return false
	}
	if len(v.sketches) > 0 && !later {
		if each := v.sketches[0].To.Sub(v.sketches[0].From); each < w.config.Report {
			wait += each
		}
	}
	return now.Sub(v.arrived) >= wait
}

// close makes v the latest report and teaches learner and forecaster.
func (w *workload) close(v *interval, c *counts) {
	end := w.end(v)
	r := report.Report{At: end}
	s, seen := v.sketches.Merge(w.config.Partitions, w.config.Report, w.SLO.Latency)
	if seen {
		w.queueing.answered(end.Add(-w.config.Report), end, s.Requests, false)
		answered := s.Load
		s.Load = w.smooth(v.number, s)
		if w.queueing.model != nil {
			var late bool
			if s.Load, late = w.queueing.comes(v.number, &s, answered, w.config.Report); late && answered > s.Load*(1-report.Small) {
				r.Aside = "backlog" // it works off what waited
			}
		}
	}
	if s.Lost {
		c.incomplete++
	}
	w.revise(v, end, c)
	stale := w.staleAfter(trimtab.Load)
	w.join.Serve(v.sketches, &s, &w.held, end.Add(-w.config.Report), end, stale)
	w.loads = w.join.Known(&w.held, end, stale)
	w.reportLoad(&r, s, seen)
	w.reportPerformance(&r, v, s, seen)
	w.reportAllocation(&r, end)
	w.mix(&r)
	coming := w.coming(&r)
	w.reportFurther(&r, end)
	if seen {
		r.Latency, r.Slowest = quantiles(&s.Latency), s.Slowest
		w.contribute(end, &s)
		if w.observed != nil && r.Load != nil {
			w.observed.take(end, w.config.Report, &s, *r.Load)
		}
	}
	switch {
	case coming == nil:
		w.skip(1)
	case w.forecaster != nil && w.forecaster.Observe(*coming) != nil:
		c.refused++
	}
	w.recover(&r)
	w.teachProxy(&r, v.proxy, c)
	w.teach(&r, c)
	if w.app != nil {
		w.app.take(w, &r, &s, c)
	}
	w.last = r
	if r.Load != nil {
		w.sawLoad = r.LoadAt
	}
	if r.Performance != nil {
		w.sawPerformance = r.PerfAt
	}
}

// fresh returns the latest sample of q that is not stale at time t.
func (w *workload) fresh(q trimtab.Quantity, t time.Time) *trimtab.Sample {
	s := w.samples[q]
	if s == nil || t.Sub(s.Time) > w.staleAfter(q) {
		return nil
	}
	return s
}
