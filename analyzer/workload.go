package analyzer

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/forecast"
	"github.com/trimtab/trimtab/analyzer/learn"
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
	held             history
	axes             []*axis // further resources
	// disturbed counts reports set aside in a row for changes of those.
	disturbed int

	last report // the latest report
	// since is when the workload was first waited for.
	since time.Time
	// told is when the last estimate went out, and toldHold its Hold's kind.
	told     time.Time
	toldHold string
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
}

// report is what one interval showed. Nil pointers are missing values.
type report struct {
	at   time.Time // the interval's end; zero: no report yet
	load *float64
	// now is the load at the end of the interval, where load is of a longer time.
	now         *float64
	loadFrom    string
	loadAt      time.Time
	performance *float64
	// requests is how many performance is the share of; fresh, how many of them no
	// earlier report taught, since windows overlap.
	requests, fresh float64
	// window is how long before its time the performance covers; 0: the interval.
	window     time.Duration
	sigma      float64
	perfFrom   string
	perfAt     time.Time
	allocation *float64
	allocFrom  string
	allocAt    time.Time
	noAlloc    string // why allocation is missing
	latency    map[string]trimtab.Seconds
	slowest    []trimtab.Exemplar
	// aside is why it did not teach the curve.
	aside string
}

func newWorkload(c *Config, w Workload) *workload {
	out := &workload{Workload: w, config: c,
		samples: map[trimtab.Quantity]*trimtab.Sample{}, missing: map[trimtab.Quantity]*trimtab.Sample{}}
	out.begin()
	return out
}

// begin makes the learner and the forecaster anew.
func (w *workload) begin() {
	w.queueing = newQueueing(&w.Workload)
	if w.Learner != nil && w.Max > 0 && w.measured() {
		w.learner = w.Learner()
	}
	w.beginAxes()
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
	case len(v.parts) >= maxParts:
		c.overflow++
	case v.add(s):
		c.duplicates++
	}
}

func (w *workload) takeSample(s *trimtab.Sample, c *counts) {
	if s.Missing != "" {
		if old := w.missing[s.Quantity]; old == nil || s.Time.After(old.Time) || s.Time.Equal(old.Time) && s.Missing > old.Missing {
			w.missing[s.Quantity] = s
		}
		return
	}
	if newer(s, w.samples[s.Quantity]) {
		w.samples[s.Quantity] = s
	}
	if s.Quantity == trimtab.Usage || s.Quantity == trimtab.Throttled {
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

func (w *workload) takeHolding(h *trimtab.Holding) {
	if w.Resource != "" {
		w.held.take(h, w.Name, w.Resource)
	}
	w.takeFurther(h)
}

// tick closes what is due and returns an estimate when there is news.
func (w *workload) tick(now time.Time, c *counts) *trimtab.Estimate {
	if w.since.IsZero() {
		w.since = now
	}
	if w.begun && w.closed > w.number(now.Add(w.config.Skew)) {
		// Only a damaged or foreign snapshot closes our future.
		w.closed = w.number(now) - 1
	}
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
	hold, kind := w.hold(now)
	in := w.standIn(now)
	same := kind == w.toldHold && in.name == w.toldFallback
	if !closed && w.pressed(now) {
		return w.estimate(now, hold, in)
	}
	if !closed && (same && now.Sub(w.told) < w.config.Round || kind == "" && in.name == "") {
		return nil
	}
	w.told, w.toldHold, w.toldFallback = now, kind, in.name
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

// complete reports whether nothing more can come for v.
func (w *workload) complete(v *interval, now time.Time) bool {
	present, whole := v.cells(w.config.Partitions, w.config.Report)
	bySpans := w.LoadFrom == FromSpans || w.PerformanceFrom == FromSpans
	return (!bySpans || present > 0 && present >= whole) &&
		(w.PerformanceFrom == FromSpans || v.performance != nil) &&
		(w.LoadFrom == FromSpans || v.load) && !now.Before(w.end(v))
}

// waited reports whether v is past its grace: ours by the clock, and quiet
// for as long, unless later intervals show that the senders went on.
func (w *workload) waited(v *interval, now time.Time, later bool) bool {
	wait := w.config.Grace
	if now.Before(w.end(v).Add(wait)) {
		return false
	}
	if len(v.parts) > 0 && !later {
		if each := v.parts[0].To.Sub(v.parts[0].From); each < w.config.Report {
			wait += each
		}
	}
	return now.Sub(v.arrived) >= wait
}

// close makes v the latest report and teaches learner and forecaster.
func (w *workload) close(v *interval, c *counts) {
	end := w.end(v)
	r := report{at: end}
	s, seen := v.merge(w.config, w.SLO.Latency)
	if seen {
		w.queueing.answered(end.Add(-w.config.Report), end, s.requests, false)
		answered := s.load
		s.load = w.smooth(v.number, s)
		load, late := w.queueing.arrive(v.number, &s, answered, w.config.Report)
		if s.load = math.Max(s.load, load); late && answered > s.load*(1-small) {
			r.aside = "backlog" // it works off what waited
		}
	}
	if s.lost {
		c.incomplete++
	}
	w.revise(v, end, c)
	w.reportLoad(&r, s, seen)
	w.reportPerformance(&r, v, s, seen)
	w.reportAllocation(&r, end)
	coming := w.coming(&r)
	w.reportFurther(&r, end)
	if seen {
		r.latency, r.slowest = quantiles(&s.latency), s.slowest
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
	if r.load != nil {
		w.sawLoad = r.loadAt
	}
	if r.performance != nil {
		w.sawPerformance = r.perfAt
	}
}

// coming is the load that the forecaster is told: the one of the report, or,
// where that is a rate over a longer window, what the use of the last seconds
// tells.
func (w *workload) coming(r *report) *float64 {
	r.now = r.load
	if r.load == nil || r.loadFrom == FromSpans || w.queueing.model == nil {
		return r.now
	}
	if s := w.fresh(trimtab.Load, r.at); s != nil && s.Window > 0 {
		w.queueing.answered(s.Time.Add(-s.Window.Duration()), s.Time, s.Value*float64(s.Window), true)
	}
	now := w.useLoad(r.at, *r.load)
	r.now = &now
	return r.now
}

// skip tells the forecaster that the loads of n intervals are missing, so that
// a season stays at its time of day.
func (w *workload) skip(n int) {
	if f, ok := w.forecaster.(interface{ Skip(n int) }); ok {
		f.Skip(n)
	}
}

func quantiles(h *trimtab.Histogram) map[string]trimtab.Seconds {
	out := map[string]trimtab.Seconds{}
	for name, q := range map[string]float64{"p50": 0.5, "p95": 0.95, "p99": 0.99} {
		if v, ok := h.Quantile(q); ok {
			out[name] = trimtab.Seconds(v)
		}
	}
	return out
}

// fresh returns the latest sample of q that is not stale at time t.
func (w *workload) fresh(q trimtab.Quantity, t time.Time) *trimtab.Sample {
	s := w.samples[q]
	if s == nil || t.Sub(s.Time) > time.Duration(w.config.StaleAfter)*w.config.Round {
		return nil
	}
	return s
}

// rate is the load of one interval, over the requests that it was counted by.
type rate struct {
	Number   int64   `json:"number"`
	Load     float64 `json:"load"`
	Requests float64 `json:"requests"`
}

const (
	// enough requests make a rate good to 10%; fewer are joined by those of
	// the intervals before, at most so many.
	enough, maxJoined = 100, 5
)

// smooth returns the load over the latest intervals in a row that hold enough
// requests together. A rate of a few requests is mostly counting noise, which
// would both flatten the curve over a/l and raise the forecast's bound.
func (w *workload) smooth(number int64, s spans) float64 {
	if n := len(w.recent); n > 0 && w.recent[n-1].Number != number-1 {
		w.recent = w.recent[:0]
	}
	w.recent = append(w.recent, rate{number, s.load, s.read})
	if len(w.recent) > maxJoined {
		w.recent = slices.Delete(w.recent, 0, 1)
	}
	load, requests, n := 0.0, 0.0, 0
	for i := len(w.recent) - 1; i >= 0 && requests < enough && n < w.config.horizon(); i-- {
		load += w.recent[i].Load
		requests += w.recent[i].Requests
		n++
	}
	return load / float64(n)
}

// reportLoad prefers the declared source; under sampling, where the rate of
// spans is only an estimate, the metric whenever there is one.
func (w *workload) reportLoad(r *report, s spans, seen bool) {
	sample := w.fresh(trimtab.Load, r.at)
	if sample != nil && (w.LoadFrom == FromPrometheus || seen && s.sampled) {
		r.load, r.loadFrom, r.loadAt = &sample.Value, sample.Source, sample.Time
		return
	}
	if seen && w.LoadFrom == FromSpans {
		load := s.load
		r.load, r.loadFrom, r.loadAt = &load, FromSpans, r.at
	}
}

func (w *workload) reportPerformance(r *report, v *interval, s spans, seen bool) {
	if w.PerformanceFrom == FromPrometheus {
		if p := v.performance; p != nil {
			value := p.Value
			r.performance, r.requests, r.sigma = &value, p.Requests, p.Sigma
			r.perfFrom, r.perfAt, r.window = p.Source, p.Time, p.Window.Duration()
			switch {
			case value > 1+extrapolated:
				r.requests = 0 // not a fraction, whatever it was taken over
			case value > 1 && r.requests > 0:
				value = 1
			}
			r.fresh = w.freshOf(r)
		}
		return
	}
	if w.app != nil && w == w.app.entry {
		if p, ok := w.ratio(&s); seen && ok {
			r.performance, r.perfFrom, r.perfAt = &p, FromSpans, r.at
		}
		return
	}
	if seen && w.SLO.Latency > 0 {
		p := min(1, s.under/s.requests)
		r.performance, r.requests, r.perfFrom, r.perfAt = &p, s.read, FromSpans, r.at
		r.fresh = r.requests
	}
}

const (
	// extrapolated is by how much a ratio of two rates may exceed 1 and still be a
	// share: Prometheus extrapolates each to the ends of its range.
	extrapolated = 0.05
	// leastFresh keeps a report whose requests were all known before a share of
	// requests; it counts for next to nothing.
	leastFresh = 1e-3
)

// freshOf returns how many of the requests of r no report taught before. Reports
// of a window W that are Δ apart share all but
//
//	n = N · min(1, Δ / W)
//
// of their N requests. A learner that was told N each time would take W/Δ times
// as many for proven as there were.
func (w *workload) freshOf(r *report) float64 {
	if r.window <= 0 || w.taught.IsZero() || r.requests == 0 {
		return r.requests
	}
	return max(leastFresh, r.requests*min(1, r.perfAt.Sub(w.taught).Seconds()/r.window.Seconds()))
}

// reportAllocation finds what was in force over the whole interval, from the
// actuator, else from a sample.
func (w *workload) reportAllocation(r *report, end time.Time) {
	over := max(w.config.Report, r.window)
	f := w.held.during(end.Add(-over), end, w.config.Settle)
	switch {
	case r.window == 0:
	case w.queueing.uneven(end.Add(-over), end):
		r.aside = "transient" // a rate over a time in which the load was another
	case w.full(end.Add(-2*over), end):
		r.aside = "backlog"
	}
	switch {
	case f.known && f.amount.Unlimited:
		// The planner never gives more than Max: what is reached without a
		// limit is at least what Max reaches, and counts as that.
		if v := w.Max; v > 0 {
			if u := w.fresh(trimtab.Usage, end); u != nil && u.Value > v {
				v = u.Value
			}
			r.allocation, r.allocFrom = &v, "actuator: unlimited"
		} else {
			r.noAlloc = "unlimited, and no maximum declared"
		}
	case f.known:
		v := f.amount.Value
		r.allocation, r.allocFrom = &v, "actuator"
	}
	if f.known {
		r.allocAt = w.held.latest()
		w.endure(r, f)
		return
	}
	if f.transient {
		r.noAlloc = "the knob was first seen, or could not be read, in this interval"
		return
	}
	s := w.fresh(trimtab.Allocation, end)
	if s == nil {
		r.noAlloc = "none known"
		return
	}
	v := s.Value
	r.allocation, r.allocFrom, r.allocAt = &v, s.Source, s.Time
	if b := w.last.allocation; b != nil && w.last.allocFrom == s.Source && far(change{amount: trimtab.Units(*b)}, change{amount: trimtab.Units(v)}) {
		r.aside = "transient"
	}
}

// endure sets r aside when the allocation changed, unless it did in all of the
// latest reports too: then the mean over the interval has to do.
func (w *workload) endure(r *report, f inForce) {
	if !f.transient {
		w.transients = 0
		return
	}
	if w.transients++; w.transients <= patience || f.amount.Unlimited || !(f.mean > 0) {
		r.aside = "transient"
		return
	}
	mean := f.mean
	r.allocation, r.allocFrom = &mean, "actuator: mean"
}

// teach gives r to the learner, or notes why not.
func (w *workload) teach(r *report, c *counts) {
	if w.learner == nil {
		return
	}
	switch {
	case r.performance == nil:
		r.aside = "no_performance"
	case r.load == nil || *r.load <= 0:
		r.aside = "no_load"
	case r.allocation == nil || *r.allocation <= 0:
		r.aside = "no_allocation"
	}
	if r.aside != "" {
		c.aside(r.aside)
		return
	}
	performance, ok := w.teachFurther(r, c)
	if !ok {
		r.aside = "other_short"
		c.aside(r.aside)
		return
	}
	o := learn.Observation{Time: r.at, Allocation: *r.allocation, Load: *r.load + w.headroom(),
		Performance: performance, Requests: r.fresh, Sigma: r.sigma}
	err := w.learner.Observe(o)
	if err != nil {
		r.aside = "refused"
		c.aside(r.aside)
		return
	}
	w.taught = r.perfAt
	o.Load = *r.load
	w.teachModel(&o)
	c.learned++
	if changed, ok := w.learner.(interface{ Changes() int }); ok {
		if n := changed.Changes(); n > w.changes {
			c.changes += uint64(n - w.changes)
			w.changes = n
		}
	}
}
