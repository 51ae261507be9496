package analyzer

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/forecast"
	"github.com/trimtab/trimtab/analyzer/report"
)

// expected is the load that a workload is expected to have.
type expected struct {
	config     *Config
	spec       *Workload
	forecaster forecast.Forecaster // nil: none
	// recent holds the rates of the latest intervals in a row, oldest first.
	recent []rate
}

// begin makes the forecaster anew.
func (p *expected) begin() {
	if p.spec.Forecaster != nil {
		p.forecaster = p.spec.Forecaster()
	}
}

// take gives the load of the next report to the forecaster; nil: it is missing. It reports
// whether the forecaster took it.
func (p *expected) take(load *float64) bool {
	if load == nil {
		p.skip(1)
		return true
	}
	return p.forecaster == nil || p.forecaster.Observe(*load) == nil
}

// skip tells the forecaster that the loads of n intervals are missing, so that
// a season stays at its time of day.
func (p *expected) skip(n int) {
	if p.forecaster != nil {
		p.forecaster.Skip(n)
	}
}

// rate is the load of one interval, over the requests that it was counted by.
type rate struct {
	Number   int64   `json:"number"`
	Load     float64 `json:"load"`
	Requests float64 `json:"requests"`
}

const (
	// enough requests make a rate good; fewer are joined by those of
	// the intervals before, at most so many.
	enough, maxJoined = report.Enough, 5
)

// smooth returns the load over the latest intervals in a row that hold enough
// requests together. A rate of a few requests is mostly counting noise, which
// would both flatten the curve over a/l and raise the forecast's bound.
func (p *expected) smooth(number int64, s report.Spans) float64 {
	if n := len(p.recent); n > 0 && p.recent[n-1].Number != number-1 {
		p.recent = p.recent[:0]
	}
	p.recent = append(p.recent, rate{number, s.Load, s.Read})
	if len(p.recent) > maxJoined {
		p.recent = slices.Delete(p.recent, 0, 1)
	}
	load, requests, n := 0.0, 0.0, 0
	for i := len(p.recent) - 1; i >= 0 && requests < enough && n < p.config.horizon(); i-- {
		load += p.recent[i].Load
		requests += p.recent[i].Requests
		n++
	}
	return load / float64(n)
}

// forecast returns what is expected of the coming round; nil while no
// load was seen.
func (p *expected) forecast(last *report.Report, q *queueing, late time.Duration) *trimtab.LoadForecast {
	l := &trimtab.LoadForecast{Level: p.config.Level, Model: "none"}
	if last.Now != nil {
		l.Now = *last.Now
		l.Mean, l.Upper = l.Now, l.Now
	}
	if p.forecaster != nil {
		if f, ok := p.forecaster.Forecast(p.config.horizon(), p.config.Level); ok {
			l.Mean, l.Upper, l.Model = f.Mean, f.Upper, f.Model
			p.lag(l, late)
			q.follow(l, last, p.config)
			if last.Now == nil {
				l.Now = f.Mean
			}
			p.lookAhead(l)
			return l
		}
	}
	if last.Now == nil {
		return nil
	}
	return l
}

// lag widens the bound of a forecast for the time by which reports are late, which spans
// that are collected make long: the coming round begins later by so much. Errors of a
// random walk grow with the root of the time ahead, and of no load faster for long.
func (p *expected) lag(l *trimtab.LoadForecast, late time.Duration) {
	if late > p.config.Report && l.Upper > l.Mean {
		l.Upper = l.Mean + (l.Upper-l.Mean)*math.Sqrt(1+late.Seconds()/p.config.Round.Seconds())
	}
}

// lookAhead adds the bound over a time that is longer than a round.
func (p *expected) lookAhead(l *trimtab.LoadForecast) {
	if p.spec.Ahead <= p.config.Round {
		return
	}
	if f, ok := p.forecaster.Forecast(p.config.reports(p.spec.Ahead), p.config.Level); ok {
		l.Later, l.Within = math.Max(l.Upper, f.Upper), trimtab.SecondsOf(p.spec.Ahead)
	}
}
