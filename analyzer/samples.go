package analyzer

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/report"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/quantity"
)

// samples has the measurements of a workload from outside its spans, their ages and intervals.
type samples struct {
	config *Config
	spec   *Workload
	// latest has the latest sample of each quantity with a value, missing the latest one without.
	latest, missing map[quantity.Quantity]*trimtab.Sample
	// paces has the intervals between samples.
	paces map[quantity.Quantity]*pace
	// join adds up samples of instances. They are not used while there are samples of the whole
	// workload; wholes is when the last of those came.
	join    report.Join
	wholes  map[quantity.Quantity]time.Time
	arrival arrival
	// since is when the workload was first expected to report, reported the end of the latest
	// report, loadFrom and perfFrom the sources of that report.
	since, reported    time.Time
	loadFrom, perfFrom string
	// sawLoad and sawPerformance are the times of the latest known values.
	sawLoad, sawPerformance time.Time
	// noLoad is since when each report has a measured load of 0; zero: the latest one has not.
	noLoad time.Time
}

func newSamples(c *Config, w *Workload) samples {
	return samples{config: c, spec: w, latest: map[quantity.Quantity]*trimtab.Sample{}, missing: map[quantity.Quantity]*trimtab.Sample{},
		paces: map[quantity.Quantity]*pace{}, wholes: map[quantity.Quantity]time.Time{}, loadFrom: w.LoadFrom, perfFrom: w.PerformanceFrom}
}

// observe keeps a sample of the workload, and reports whether it has a value.
func (m *samples) observe(s *trimtab.Sample) bool {
	if s.Missing != "" {
		if s.Quantity == quantity.Load {
			m.noLoad = time.Time{}
		}
		if old := m.missing[s.Quantity]; old == nil || s.Time.After(old.Time) || s.Time.Equal(old.Time) && s.Missing > old.Missing {
			m.missing[s.Quantity] = s
		}
		return false
	}
	m.pace(s.Quantity).observe(s.Time, m.config.Report/2)
	if newer(s, m.latest[s.Quantity]) {
		m.latest[s.Quantity] = s
	}
	return true
}

// gather adds up the samples of instances. If there are samples of the workload as well, those of
// instances only determine the shares of the load.
func (m *samples) gather(now time.Time, held *report.History, take func(*trimtab.Sample)) {
	if m.join.Idle() {
		return
	}
	give := func(s *trimtab.Sample) {
		if now.Sub(m.wholes[s.Quantity]) > m.staleAfter(s.Quantity) {
			s.Workload = m.spec.Name
			take(s)
		}
	}
	m.join.Tick(now, held, m.staleAfter, give)
	m.join.ReportMissing(now, held, m.lateAfter, give)
}

// report records the sources of the latest report.
func (m *samples) report(r *report.Report) {
	m.reported = r.At
	m.loadFrom, m.perfFrom = cmp.Or(r.LoadFrom, m.spec.LoadFrom), cmp.Or(r.PerfFrom, m.spec.PerformanceFrom)
	if r.Load != nil {
		m.sawLoad = r.LoadAt
	}
	switch {
	case r.Load == nil || *r.Load != 0:
		m.noLoad = time.Time{}
	case m.noLoad.IsZero():
		m.noLoad = r.LoadAt
	}
	if r.Performance != nil {
		m.sawPerformance = r.PerfAt
	}
}

// reportLoad sets the load of a report from the declared source. If spans are sampled, their rate
// is only an estimate, and a metric is preferred.
func (m *samples) reportLoad(r *report.Report, s report.Spans, seen bool) {
	sample := m.fresh(quantity.Load, r.At)
	if sample != nil && (m.spec.LoadFrom == FromPrometheus || seen && s.Sampled) {
		r.Load, r.LoadFrom, r.LoadAt = &sample.Value, sample.Source, sample.Time
		return
	}
	if seen && m.spec.LoadFrom == FromSpans {
		load := s.Load
		r.Load, r.LoadFrom, r.LoadAt = &load, FromSpans, r.At
	}
}

// fresh returns the latest sample of q that is not stale at time t.
func (m *samples) fresh(q quantity.Quantity, t time.Time) *trimtab.Sample {
	return m.within(q, t, m.staleAfter(q))
}

// within returns the latest sample of q, unless it is older than age at time t.
func (m *samples) within(q quantity.Quantity, t time.Time, age time.Duration) *trimtab.Sample {
	s := m.latest[q]
	if s == nil || t.Sub(s.Time) > age {
		return nil
	}
	return s
}

// missingInput returns what is wrong with an input that was last known at the given time (zero: not in the
// latest report), or nil.
func (m *samples) missingInput(now time.Time, q quantity.Quantity, from string, at time.Time) *trimtab.Held {
	held := func(code codes.HeldCode, source, format string, args ...any) *trimtab.Held {
		return &trimtab.Held{Code: code, Text: fmt.Sprintf("no %s from %s ", q, source) + fmt.Sprintf(format, args...), Input: string(q), Source: source}
	}
	if s := m.missing[q]; s != nil && from == FromPrometheus && s.Time.After(at) {
		return held(codes.HeldMissing, s.Source, "for %v: %s", whole(now.Sub(s.Time)), s.Missing)
	}
	since, word := at, "for"
	if at.IsZero() {
		if since = m.reported; since.IsZero() {
			since, word = m.since, "yet, waiting for"
		} else {
			return held(codes.HeldAbsent, from, "in the latest report, of %v ago", whole(now.Sub(since)))
		}
	}
	age := now.Sub(since)
	rounds := float64(age) / float64(m.config.Round)
	switch {
	case age > m.staleAfter(q):
		return held(codes.HeldStale, from, "%s %v, stale after %v", word, whole(age), whole(m.staleAfter(q)))
	case age > m.lateAfter(q) || word != "for":
		return held(codes.HeldLate, from, "%s %v, %.0f rounds", word, whole(age), math.Ceil(rounds))
	}
	return nil
}

// whole returns an age in whole seconds, never negative.
func whole(age time.Duration) time.Duration { return max(0, age).Round(time.Second) }

// input describes an input with the value v; nil: it has none.
func (m *samples) input(now time.Time, name string, v *float64, at time.Time, source, from string) trimtab.Input {
	if v == nil {
		in := trimtab.Input{Name: name, Source: from, Missing: "none yet"}
		if !m.reported.IsZero() {
			in.Age, in.Missing = age(now, m.reported), "not in the latest report"
		}
		if s := m.missing[quantity.Quantity(name)]; s != nil && from == FromPrometheus {
			in.Age, in.Missing = age(now, s.Time), s.Missing
		}
		return in
	}
	return trimtab.Input{Name: name, Value: *v, Age: age(now, at), Source: source}
}

// age returns how long ago t was, never negative.
func age(now, t time.Time) trimtab.Seconds { return trimtab.SecondsOf(max(0, now.Sub(t))) }

// further lists the quantities that no report uses, in a fixed order.
func (m *samples) further(now time.Time) (in []trimtab.Input) {
	for _, q := range []quantity.Quantity{quantity.Usage, quantity.Throttled, quantity.Waited, quantity.Queued, quantity.Latency, quantity.Proxy} {
		s, lack := m.latest[q], m.missing[q]
		waits := q == quantity.Waited || q == quantity.Queued
		if waits { // shown only while they may be the sole sign of a wait
			s, lack = m.current(s), m.current(lack)
		}
		switch {
		case lack != nil && (waits && s == nil || lack.Host != "" && (s == nil || lack.Time.After(s.Time))):
			in = append(in, trimtab.Input{Name: string(q), Age: age(now, lack.Time), Source: lack.Source, Missing: lack.Missing})
		case s != nil:
			in = append(in, m.input(now, string(q), &s.Value, s.Time, s.Source, ""))
		}
	}
	return in
}

// current returns the sample, or nil if the use at a later time is known.
func (m *samples) current(s *trimtab.Sample) *trimtab.Sample {
	if u := m.latest[quantity.Usage]; s == nil || u != nil && s.Time.Before(u.Time) {
		return nil
	}
	return s
}

// stale reports whether a value that was last known at t is stale.
func (m *samples) stale(now, t time.Time) bool {
	if t.Before(m.since) {
		t = m.since
	}
	return now.Sub(t) > m.staleAfter(quantity.Performance)
}

// idle returns since when a source outside the workload has reported load 0, without a gap; zero: it
// does not.
func (m *samples) idle(now time.Time) time.Time {
	s, lack := m.fresh(quantity.Load, now), m.missing[quantity.Load]
	if m.spec.LoadFrom != FromPrometheus || s == nil || s.Value != 0 || lack != nil && lack.Time.After(s.Time) {
		return time.Time{}
	}
	return m.noLoad
}

// spare reports whether the workload leaves much of the first resource unused, by samples of its
// use.
func (m *samples) spare(r *report.Report) bool {
	recently := max(2*m.config.Report, 2*time.Second)
	used, t := m.within(quantity.Usage, r.At, recently), m.within(quantity.Throttled, r.At, recently)
	return used != nil && r.Allocation != nil && used.Value <= idleUsage**r.Allocation && (t == nil || t.Value <= idleThrottled)
}

// pace is the interval between new samples of a source: the shortest of the latest distances
// between samples of different times, so that a gap does not make it longer. A sample from
// Prometheus has the time of its newest scrape, however often it is queried.
type pace struct {
	last time.Time
	gaps [4]time.Duration // 0: unknown
	next int
}

// observe records the time of a sample. Times that differ by less than least count as equal: the time
// of a scrape is known to a few milliseconds only.
func (p *pace) observe(at time.Time, least time.Duration) {
	gap := at.Sub(p.last)
	if gap < least {
		return
	}
	if !p.last.IsZero() {
		p.gaps[p.next%len(p.gaps)] = gap
		p.next++
	}
	p.last = at
}

// every returns the time between two new samples; 0: unknown.
func (p *pace) every() (least time.Duration) {
	for _, gap := range p.gaps {
		if gap > 0 && (least == 0 || gap < least) {
			least = gap
		}
	}
	return least
}

// slowest is the longest interval of a source that is waited for, in rounds.
const slowest = 12

// pace returns the pace of a quantity.
func (m *samples) pace(q quantity.Quantity) *pace {
	p := m.paces[q]
	if p == nil {
		p = &pace{}
		m.paces[q] = p
	}
	return p
}

// lateAfter returns the age from which on a quantity is late: a round, or two intervals of its
// source if that is longer, plus Grace and the time that spans take to arrive.
func (m *samples) lateAfter(q quantity.Quantity) time.Duration {
	return max(m.config.Round, 2*m.config.Report, 2*m.every(q)) + m.config.Grace + m.underWay(q)
}

// staleAfter returns the age from which on a quantity is stale.
func (m *samples) staleAfter(q quantity.Quantity) time.Duration {
	return time.Duration(m.config.StaleAfter)*max(m.config.Round, m.every(q)) + m.underWay(q)
}

// from returns the source of a quantity; "": reports do not use it.
func (m *samples) from(q quantity.Quantity) string {
	switch q {
	case quantity.Load:
		return m.loadFrom
	case quantity.Performance:
		return m.perfFrom
	}
	return ""
}

// underWay returns how long the values of a quantity take to arrive.
func (m *samples) underWay(q quantity.Quantity) time.Duration {
	if m.from(q) != FromSpans {
		return 0
	}
	return m.arrival.wait()
}

// every returns the interval of a quantity's source, at most the longest that is waited for. It is
// 0 if it is unknown or the quantity comes from spans, which come all the time: slow samples of the
// same quantity must not delay its staleness.
func (m *samples) every(q quantity.Quantity) time.Duration {
	if p := m.paces[q]; p != nil && m.from(q) != FromSpans {
		return min(p.every(), slowest*m.config.Round)
	}
	return 0
}
