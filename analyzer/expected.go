package analyzer

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/forecast"
	"github.com/trimtab/trimtab/analyzer/report"
)

// expected forecasts the load of a workload.
type expected struct {
	config     *Config
	spec       *Workload
	forecaster forecast.Forecaster // nil: none
	// recent has the rates of the latest intervals in a row, the oldest first.
	recent []rate
}

// begin creates a new forecaster.
func (p *expected) begin() {
	if p.spec.Forecaster != nil {
		p.forecaster = p.spec.Forecaster()
	}
}

// observe gives the load of the next report to the forecaster, nil if it is missing. It reports
// whether the forecaster accepted it.
func (p *expected) observe(load *float64) bool {
	if load == nil {
		p.skip(1)
		return true
	}
	return p.forecaster == nil || p.forecaster.Observe(*load) == nil
}

// skip tells the forecaster that the loads of n intervals are missing, so that a seasonal model
// stays in step with the time of day.
func (p *expected) skip(n int) {
	if p.forecaster != nil {
		p.forecaster.Skip(n)
	}
}

// rate is the load of one interval in requests per second, with the number of requests that were
// counted for it.
type rate struct {
	Number   int64   `json:"number"`
	Load     float64 `json:"load"`
	Requests float64 `json:"requests"`
}

const (
	// enough is the number of requests from which on a rate is precise; with fewer it is averaged
	// with those of up to maxJoined latest intervals.
	enough, maxJoined = report.Enough, 5
)

// smooth returns the mean load over the latest intervals in a row that have enough requests
// together. A rate of a few requests is mostly counting noise, which would flatten the curve over
// a/l and raise the forecast's upper bound.
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

// forecast returns the forecast of the coming round, or nil while no load was observed. late is by
// how long reports are late.
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

// lag widens the upper bound of a forecast if reports are late, as they are if spans are collected
// for long: the forecast then starts further in the past. The error of a random walk grows with the
// square root of the time ahead, and no load's error grows faster for long.
func (p *expected) lag(l *trimtab.LoadForecast, late time.Duration) {
	if late > p.config.Report && l.Upper > l.Mean {
		l.Upper = l.Mean + (l.Upper-l.Mean)*math.Sqrt(1+late.Seconds()/p.config.Round.Seconds())
	}
}

// lookAhead adds the upper bound over the longer horizon Ahead.
func (p *expected) lookAhead(l *trimtab.LoadForecast) {
	if p.spec.Ahead <= p.config.Round {
		return
	}
	if f, ok := p.forecaster.Forecast(p.config.reports(p.spec.Ahead), p.config.Level); ok {
		l.Later, l.Within = math.Max(l.Upper, f.Upper), trimtab.SecondsOf(p.spec.Ahead)
	}
}
