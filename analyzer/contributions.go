package analyzer

import (
	"time"

	"github.com/trimtab/trimtab/analyzer/contribution"
	"github.com/trimtab/trimtab/analyzer/report"
)

// beginLive forgets what is known of the contributions to the tail.
func (w *workload) beginLive() {
	w.live, w.news = nil, nil
	if w.SLO.Latency > 0 {
		w.live = contribution.NewLive(contribution.Objective{
			Workload: w.Name, SLO: w.SLO.Latency.Seconds(), Quantile: w.SLO.Fraction, MaxLoad: w.MaxLoad, Servpods: w.Servpods})
	}
}

// contribute takes what the spans of an interval told.
func (w *workload) contribute(end time.Time, s *report.Spans) {
	if w.live == nil {
		return
	}
	w.live.Take(contribution.Interval{From: end.Add(-w.config.Report), To: end, Requests: s.Requests, Latency: &s.Latency, Servpods: s.Servpods, Calls: s.Calls})
	w.news = w.live.Report(end)
}
