package analyzer

import (
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
)

// hold returns why the workload must not be lowered; nil when there is no
// reason. When input counts as late and as stale is told in pace.go.
func (w *workload) hold(now time.Time) *trimtab.Held {
	if w.knowsEnough() {
		return nil
	}
	r := &w.last
	if w.from(trimtab.Load) == FromSpans {
		if why := w.arrival.lacks(); why != nil {
			return why
		}
	}
	for _, in := range []struct {
		name   string
		from   string
		q      trimtab.Quantity
		at     time.Time
		absent bool
	}{
		{"load", w.LoadFrom, trimtab.Load, r.LoadAt, r.Load == nil},
		{"performance", w.PerformanceFrom, trimtab.Performance, r.PerfAt, r.Performance == nil},
	} {
		if in.q == trimtab.Performance && (w.learner == nil || in.absent && w.idle(now)) {
			continue
		}
		at := in.at
		if in.absent {
			at = time.Time{}
		}
		if why := w.lacks(now, in.name, in.from, at, in.q); why != nil {
			return why
		}
	}
	return nil
}

// lacks says what is wrong with one input that was last seen at the given
// time (zero: not in the latest report).
func (w *workload) lacks(now time.Time, name, from string, at time.Time, q trimtab.Quantity) *trimtab.Held {
	held := func(code trimtab.HeldCode, source, format string, args ...any) *trimtab.Held {
		return &trimtab.Held{Code: code, Text: fmt.Sprintf("no %s from %s ", name, source) + fmt.Sprintf(format, args...), Input: name, Source: source}
	}
	if m := w.missing[q]; m != nil && from == FromPrometheus && m.Time.After(at) {
		return held(trimtab.HeldMissing, m.Source, "for %v: %s", whole(now.Sub(m.Time)), m.Missing)
	}
	since, word := at, "for"
	if at.IsZero() {
		if since = w.last.At; since.IsZero() {
			since, word = w.since, "yet, waiting for"
		} else {
			return held(trimtab.HeldAbsent, from, "in the latest report, of %v ago", whole(now.Sub(since)))
		}
	}
	age := now.Sub(since)
	rounds := float64(age) / float64(w.config.Round)
	switch {
	case age > w.staleAfter(q):
		return held(trimtab.HeldStale, from, "%s %v, stale after %v", word, whole(age), whole(w.staleAfter(q)))
	case age > w.lateAfter(q) || word != "for":
		return held(trimtab.HeldLate, from, "%s %v, %.0f rounds", word, whole(age), math.Ceil(rounds))
	}
	return nil
}

// alike tells two reasons of one kind: what differs is in the texts.
func alike(a, b *trimtab.Held) bool {
	return a == b || a != nil && b != nil && a.Code == b.Code && a.Input == b.Input
}

// whole is an age for people: whole seconds, never negative.
func whole(age time.Duration) time.Duration { return max(0, age).Round(time.Second) }

// estimate says all that is known at now.
func (w *workload) estimate(now time.Time, hold *trimtab.Held, in standIn) *trimtab.Estimate {
	r := &w.last
	e := &trimtab.Estimate{
		Workload:    w.Name,
		Time:        now,
		Performance: r.Performance,
		Requests:    r.Requests,
		Window:      trimtab.SecondsOf(r.Window),
		Allocation:  r.Allocation,
		Latency:     r.Latency,
		Observed:    w.observed.told(),
		Model:       "none",
		Hold:        hold,
		Load:        w.forecastLoad(),
		Inputs:      w.inputs(now),
		Counters:    w.counted(now),
		Exemplars:   r.Slowest,
		Shares:      w.loads.Shares(),
	}
	if w.bySpans() {
		e.Notes = w.arrival.notes()
	}
	if w.PerformanceFrom == FromSpans && w.app == nil && w.SLO.Latency > 0 {
		e.Newer = w.arrival.newer(now)
	}
	if w.learner != nil {
		e.Model, e.Reports = w.learner.Name(), w.learner.Reports()
		if e.Load != nil && e.Load.Upper > 0 {
			e.Curve = learn.CurveOf(w.learner, e.Load.Upper+w.headroom(), w.Min, w.upTo(e.Load), w.config.Level)
			if e.Curve != nil {
				e.Curve.Load, e.Curve.Headroom = e.Load.Upper, w.headroom()
			}
		}
		e.Fixed = w.atFixed()
		w.inform(e)
		w.estimateFurther(e)
	}
	if in.name != "" {
		w.stand(e, in)
	}
	if w.learner != nil {
		w.starves(e, now)
	}
	w.noteWaits(e)
	if text := w.remarks.note(now); text != "" && len(e.Notes) < trimtab.MaxNotes {
		e.Notes = append(e.Notes, text)
	}
	if err := e.Validate(); err != nil {
		// A learner or forecaster broke its contract: say so and hold.
		return invalid(e, err)
	}
	return e
}

// invalid is what is said instead of an estimate that is not valid.
func invalid(e *trimtab.Estimate, err error) *trimtab.Estimate {
	return &trimtab.Estimate{Workload: e.Workload, Time: e.Time, Model: e.Model,
		Hold: &trimtab.Held{Code: trimtab.HeldInvalid, Text: "the estimate was not valid: " + err.Error()}}
}

// counted are its performance counters of the last rounds.
func (w *workload) counted(now time.Time) []trimtab.Input {
	w.counters.forget(now.Add(-max(time.Minute, 3*w.config.Round)))
	return w.counters.inputs(now)
}

// upTo returns up to which allocation a curve at the upper bound of the load must
// go to cover the workload's maximum when it is read at the mean. The load of the
// latest report does not count: while it is next to nothing, the knots would be
// spread over a thousand times the maximum, with none where they are read.
func (w *workload) upTo(l *trimtab.LoadForecast) float64 {
	return w.most() * (l.Upper + w.headroom()) / math.Max(l.Mean+w.headroom(), 1e-3*l.Upper)
}

// forecastLoad returns what is expected of the coming round; nil while no
// load was seen.
func (w *workload) forecastLoad() *trimtab.LoadForecast {
	l := &trimtab.LoadForecast{Level: w.config.Level, Model: "none"}
	if w.last.Now != nil {
		l.Now = *w.last.Now
		l.Mean, l.Upper = l.Now, l.Now
	}
	if w.forecaster != nil {
		if f, ok := w.forecaster.Forecast(w.config.horizon(), w.config.Level); ok {
			l.Mean, l.Upper, l.Model = f.Mean, f.Upper, f.Model
			w.lag(l)
			w.follow(l)
			if w.last.Now == nil {
				l.Now = f.Mean
			}
			w.lookAhead(l)
			return l
		}
	}
	if w.last.Now == nil {
		return nil
	}
	return l
}

// lag widens the bound of a forecast for the time by which reports are late, which spans
// that are collected make long: the coming round begins later by so much. Errors of a
// random walk grow with the root of the time ahead, and of no load faster for long.
func (w *workload) lag(l *trimtab.LoadForecast) {
	if late := w.underWay(trimtab.Load); late > w.config.Report && l.Upper > l.Mean {
		l.Upper = l.Mean + (l.Upper-l.Mean)*math.Sqrt(1+late.Seconds()/w.config.Round.Seconds())
	}
}

// lookAhead adds the bound over a time that is longer than a round.
func (w *workload) lookAhead(l *trimtab.LoadForecast) {
	if w.Ahead <= w.config.Round {
		return
	}
	if f, ok := w.forecaster.Forecast(w.config.reports(w.Ahead), w.config.Level); ok {
		l.Later, l.Within = math.Max(l.Upper, f.Upper), trimtab.SecondsOf(w.Ahead)
	}
}

// inputs lists what the estimate looked at, in a fixed order.
func (w *workload) inputs(now time.Time) []trimtab.Input {
	r := &w.last
	in := append(make([]trimtab.Input, 0, 8),
		w.input(now, "load", r.Load, r.LoadAt, r.LoadFrom, w.LoadFrom),
		w.input(now, "performance", r.Performance, r.PerfAt, r.PerfFrom, w.PerformanceFrom),
	)
	if w.learner != nil {
		a := w.input(now, "allocation", r.Allocation, r.AllocAt, r.AllocFrom, "actuator")
		if r.Allocation == nil && r.NoAlloc != "" {
			a.Missing = r.NoAlloc
		}
		in = append(in, a)
	}
	for _, q := range []trimtab.Quantity{trimtab.Usage, trimtab.Throttled, trimtab.Waited, trimtab.Queued, trimtab.Latency, trimtab.Proxy} {
		s, m := w.samples[q], w.missing[q]
		if q == trimtab.Waited || q == trimtab.Queued { // it is told while it may wait alone
			s, m = w.newest(s), w.newest(m)
		}
		switch {
		case m != nil && (q == trimtab.Waited || q == trimtab.Queued) && s == nil:
			in = append(in, trimtab.Input{Name: string(q), Age: age(now, m.Time), Source: m.Source, Missing: m.Missing})
		case m != nil && m.Host != "" && (s == nil || m.Time.After(s.Time)):
			in = append(in, trimtab.Input{Name: string(q), Age: age(now, m.Time), Source: m.Source, Missing: m.Missing})
		case s != nil:
			in = append(in, w.input(now, string(q), &s.Value, s.Time, s.Source, ""))
		}
	}
	if w.loads == nil && w.join.Lacks() != "" {
		in = append(in, trimtab.Input{Name: "shares", Source: FromSpans, Age: age(now, r.At), Missing: w.join.Lacks()})
	}
	if r.Aside != "" && w.learner != nil {
		in = append(in, trimtab.Input{Name: "report", Age: age(now, r.At), Missing: "not learnt from: " + r.Aside})
	}
	return in
}

// newest returns a sample unless the use of a later time is known; nil: it is, or there is none.
func (w *workload) newest(s *trimtab.Sample) *trimtab.Sample {
	if u := w.samples[trimtab.Usage]; s == nil || u != nil && s.Time.Before(u.Time) {
		return nil
	}
	return s
}

func (w *workload) input(now time.Time, name string, v *float64, at time.Time, source, from string) trimtab.Input {
	if v == nil {
		in := trimtab.Input{Name: name, Source: from, Missing: "none yet"}
		if !w.last.At.IsZero() {
			in.Age, in.Missing = age(now, w.last.At), "not in the latest report"
		}
		if m := w.missing[trimtab.Quantity(name)]; m != nil && from == FromPrometheus {
			in.Age, in.Missing = age(now, m.Time), m.Missing
		}
		return in
	}
	return trimtab.Input{Name: name, Value: *v, Age: age(now, at), Source: source}
}

// age is how long ago t was, never negative.
func age(now, t time.Time) trimtab.Seconds { return trimtab.SecondsOf(max(0, now.Sub(t))) }
