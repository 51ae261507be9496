package replicas

import (
	"time"

	"github.com/trimtab/trimtab"
)

// Minute sums up the requests of a workload during about a minute.
type Minute struct {
	began, last      time.Time
	requests, inTime float64
}

// Observe adds an estimate. At the end of a minute it updates the margin with whether that minute
// missed the SLO.
func (m *Minute) Observe(now time.Time, e *trimtab.Estimate, slo float64, margin *Margin) {
	if e.Performance == nil || !e.Time.After(m.last) {
		return
	}
	if now.Sub(m.began) > 2*time.Minute { // first estimate, or the first after a gap
		*m = Minute{began: now}
	}
	n := max(e.Requests, 1) // the source reports performance without a number of requests
	m.last, m.requests, m.inTime = e.Time, m.requests+n, m.inTime+n**e.Performance
	if now.Sub(m.began) >= time.Minute {
		margin.Observe(m.inTime < slo*m.requests)
		*m = Minute{began: now, last: e.Time}
	}
}
