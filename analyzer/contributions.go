package analyzer

import (
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/contribution"
	"github.com/trimtab/trimtab/analyzer/report"
	"github.com/trimtab/trimtab/colocation"
)

// tail computes what each component of a workload adds to its tail latency.
type tail struct {
	config *Config
	spec   *Workload
	live   *contribution.Live // nil: no latency SLO
	// latest has the contributions of the latest report, until they are published.
	latest *colocation.Contributions
	beside beside // see [Analyzer]
}

// begin resets what was learned.
func (l *tail) begin() {
	l.live, l.latest = nil, nil
	if slo := l.spec.SLO; slo.Latency > 0 {
		l.live = contribution.NewLive(contribution.Objective{
			Workload: l.spec.Name, SLO: slo.Latency.Seconds(), Quantile: slo.Fraction, MaxLoad: l.spec.MaxLoad, Servpods: l.spec.Servpods})
	}
}

// observe adds the spans of an interval.
func (l *tail) observe(end time.Time, s *report.Spans) {
	if l.live == nil {
		return
	}
	from := end.Add(-l.config.Report)
	l.live.Observe(contribution.Interval{From: from, To: end, Requests: s.Requests, Latency: &s.Latency, Servpods: s.Servpods, Calls: s.Calls,
		Beside: l.beside.ran(s.Servpods, from)})
	l.latest = l.live.Report(end)
}

// beside has, by host, until when best-effort jobs are known or assumed to run there.
type beside map[string]time.Time

// besideFor is how long jobs are assumed to run after an agent reported them. Agents report more
// often, and at once when it changes.
const besideFor = time.Minute

// observe records whether best-effort jobs run on a host.
func (b beside) observe(now time.Time, c *colocation.Colocation) {
	if _, known := b[c.Host]; !known && len(b) >= maxReported {
		return
	}
	switch {
	case c.Running > 0:
		b[c.Host] = now.Add(besideFor)
	case b[c.Host].After(now):
		b[c.Host] = now
	}
}

// ran reports whether best-effort jobs ran after from on a host of one of the Servpods. A Servpod
// without a host may be on any of them. The hosts of peers do not matter.
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
