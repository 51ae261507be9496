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

// samples are what was measured of a workload, from when, and how often it comes.
type samples struct {
	config *Config
	spec   *Workload
	// latest holds the latest sample of each quantity that has a value, and
	// missing the latest without.
	latest, missing map[quantity.Quantity]*trimtab.Sample
	// paces are how often those come.
	paces map[quantity.Quantity]*pace
	// join makes samples out of those of instances, unless there are some of the
	// workload, wholes says of when.
	join    report.Join
	wholes  map[quantity.Quantity]time.Time
	arrival arrival
	// since is when the workload was first waited for, reported the end of the latest
	// report, loadFrom and perfFrom what it was made of.
	since, reported    time.Time
	loadFrom, perfFrom string
	// sawLoad and sawPerformance are when each was last true.
	sawLoad, sawPerformance time.Time
}

func newSamples(c *Config, w *Workload) samples {
	return samples{config: c, spec: w, latest: map[quantity.Quantity]*trimtab.Sample{}, missing: map[quantity.Quantity]*trimtab.Sample{},
		paces: map[quantity.Quantity]*pace{}, wholes: map[quantity.Quantity]time.Time{}, loadFrom: w.LoadFrom, perfFrom: w.PerformanceFrom}
}

// take keeps a sample of the workload, and reports whether it has a value.
func (m *samples) take(s *trimtab.Sample) bool {
	if s.Missing != "" {
		if old := m.missing[s.Quantity]; old == nil || s.Time.After(old.Time) || s.Time.Equal(old.Time) && s.Missing > old.Missing {
			m.missing[s.Quantity] = s
		}
		return false
	}
	m.pace(s.Quantity).take(s.Time, m.config.Report/2)
	if newer(s, m.latest[s.Quantity]) {
		m.latest[s.Quantity] = s
	}
	return true
}

// gather joins the samples of instances. Of what is also told of the workload they
// tell the shares alone.
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
	m.join.Lacking(now, held, m.lateAfter, give)
}

// report notes of what the latest report was made.
func (m *samples) report(r *report.Report) {
	m.reported = r.At
	m.loadFrom, m.perfFrom = cmp.Or(r.LoadFrom, m.spec.LoadFrom), cmp.Or(r.PerfFrom, m.spec.PerformanceFrom)
	if r.Load != nil {
		m.sawLoad = r.LoadAt
	}
	if r.Performance != nil {
		m.sawPerformance = r.PerfAt
	}
}

// reportLoad prefers the declared source; under sampling, where the rate of
// spans is only an estimate, the metric whenever there is one.
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

// within returns the latest sample of q unless it is older than that at time t.
func (m *samples) within(q quantity.Quantity, t time.Time, age time.Duration) *trimtab.Sample {
	s := m.latest[q]
	if s == nil || t.Sub(s.Time) > age {
		return nil
	}
	return s
}

// lacks says what is wrong with one input that was last seen at the given
// time (zero: not in the latest report).
func (m *samples) lacks(now time.Time, q quantity.Quantity, from string, at time.Time) *trimtab.Held {
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

// whole is an age for people: whole seconds, never negative.
func whole(age time.Duration) time.Duration { return max(0, age).Round(time.Second) }

// input says what is known of one input, which has the value v or, nil, none.
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

// age is how long ago t was, never negative.
func age(now, t time.Time) trimtab.Seconds { return trimtab.SecondsOf(max(0, now.Sub(t))) }

// further lists the quantities that no report is made of, in a fixed order.
func (m *samples) further(now time.Time) (in []trimtab.Input) {
	for _, q := range []quantity.Quantity{quantity.Usage, quantity.Throttled, quantity.Waited, quantity.Queued, quantity.Latency, quantity.Proxy} {
		s, lack := m.latest[q], m.missing[q]
		waits := q == quantity.Waited || q == quantity.Queued
		if waits { // it is told while it may wait alone
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

// current returns a sample unless the use of a later time is known; nil: it is, or there is none.
func (m *samples) current(s *trimtab.Sample) *trimtab.Sample {
	if u := m.latest[quantity.Usage]; s == nil || u != nil && s.Time.Before(u.Time) {
		return nil
	}
	return s
}

// stale reports whether what was last seen at t is too old to go by.
func (m *samples) stale(now, t time.Time) bool {
	if t.Before(m.since) {
		t = m.since
	}
	return now.Sub(t) > m.staleAfter(quantity.Performance)
}

// idle reports whether a source outside the workload measures that it has no load.
func (m *samples) idle(now time.Time) bool {
	s, lack := m.fresh(quantity.Load, now), m.missing[quantity.Load]
	return m.spec.LoadFrom == FromPrometheus && s != nil && s.Value == 0 && (lack == nil || !lack.Time.After(s.Time))
}

// spare reports whether the first resource is idle, by the samples of its use.
func (m *samples) spare(r *report.Report) bool {
	recently := max(2*m.config.Report, 2*time.Second)
	used, t := m.within(quantity.Usage, r.At, recently), m.within(quantity.Throttled, r.At, recently)
	return used != nil && r.Allocation != nil && used.Value <= idleUsage**r.Allocation && (t == nil || t.Value <= idleThrottled)
}

// pace is how often a source has news: the least of the latest distances between
// samples of different times, so that a gap does not make it slower. A sample that
// is asked of Prometheus is as old as its newest scrape, and no asking makes it
// younger.
type pace struct {
	last time.Time
	gaps [4]time.Duration // 0: not seen yet
	next int
}

// take enters when a sample is of. Times that differ by less than least are one:
// the age of a scrape is known to some milliseconds.
func (p *pace) take(at time.Time, least time.Duration) {
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

// every returns the time between two pieces of news; 0: unknown.
func (p *pace) every() (least time.Duration) {
	for _, gap := range p.gaps {
		if gap > 0 && (least == 0 || gap < least) {
			least = gap
		}
	}
	return least
}

// slowest is the longest pace that is waited for, in rounds.
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

// lateAfter is the age at which a quantity is late: a round, or, where that is
// longer, when the second piece of news after it was due. What spans tell comes in one
// piece of all the time for which their senders collect them.
func (m *samples) lateAfter(q quantity.Quantity) time.Duration {
	return max(m.config.Round, 2*m.config.Report, 2*m.every(q)) + m.config.Grace + m.underWay(q)
}

// staleAfter is the age at which nothing is proven by it any more.
func (m *samples) staleAfter(q quantity.Quantity) time.Duration {
	return time.Duration(m.config.StaleAfter)*max(m.config.Round, m.every(q)) + m.underWay(q)
}

// from is the source of a quantity; "": it is no input of a report.
func (m *samples) from(q quantity.Quantity) string {
	switch q {
	case quantity.Load:
		return m.loadFrom
	case quantity.Performance:
		return m.perfFrom
	}
	return ""
}

// underWay is for how long what tells a quantity may be on its way.
func (m *samples) underWay(q quantity.Quantity) time.Duration {
	if m.from(q) != FromSpans {
		return 0
	}
	return m.arrival.wait()
}

// every returns the pace of a quantity, as far as it is waited for; 0: unknown, or
// told by spans, which come all the time: slow samples beside them excuse nothing.
func (m *samples) every(q quantity.Quantity) time.Duration {
	if p := m.paces[q]; p != nil && m.from(q) != FromSpans {
		return min(p.every(), slowest*m.config.Round)
	}
	return 0
}
