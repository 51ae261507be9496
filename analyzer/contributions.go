package analyzer

import (
	"time"

	"github.com/trimtab/trimtab"
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
	w.live.Take(contribution.Interval{From: end.Add(-w.config.Report), To: end, Requests: s.Requests, Latency: &s.Latency, Servpods: s.Servpods, Calls: s.Calls,
		Beside: w.beside.ran(s.Servpods, end.Add(-w.config.Report))})
	w.news = w.live.Report(end)
}

// beside is until when best-effort jobs ran on each host, as far as is known.
type beside map[string]time.Time

// besideFor is how long jobs are taken to run on after a word that they do. Agents say
// so more often, and at once when it changes.
const besideFor = time.Minute

// hear takes in how the jobs of a host stand.
func (b beside) hear(now time.Time, c *trimtab.Colocation) {
	if _, known := b[c.Host]; !known && len(b) >= maxTold {
		return
	}
	switch {
	case c.Running > 0:
		b[c.Host] = now.Add(besideFor)
	case b[c.Host].After(now):
		b[c.Host] = now
	}
}

// ran reports whether best-effort jobs ran after a time on a host of one of the
// Servpods. One that names no host may be on any; where a peer runs is no matter.
func (b beside) ran(servpods []trimtab.ServpodSketch, from time.Time) bool {
	for i := range servpods {
		if b[servpods[i].Host].After(from) {
			return true
		}
		if servpods[i].Host != "" || servpods[i].Peer {
			continue
		}
		for _, until := range b {
			if until.After(from) {
				return true
			}
		}
	}
	return false
}
