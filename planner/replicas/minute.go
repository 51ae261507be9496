package replicas

import (
	"time"

	"github.com/trimtab/trimtab"
)

// Minute is the requests of a workload since began, for a minute.
type Minute struct {
	began, last      time.Time
	requests, inTime float64
}

// Take adds an estimate, and at the end of a minute updates the margin by whether the minute
// missed the SLO.
func (m *Minute) Take(now time.Time, e *trimtab.Estimate, slo float64, margin *Margin) {
	if e.Performance == nil || !e.Time.After(m.last) {
		return
	}
	if now.Sub(m.began) > 2*time.Minute { // it begins, or was not served meanwhile
		*m = Minute{began: now}
	}
	n := max(e.Requests, 1) // 1: performance comes from a query that tells of none
	m.last, m.requests, m.inTime = e.Time, m.requests+n, m.inTime+n**e.Performance
	if now.Sub(m.began) >= time.Minute {
		margin.Observe(m.inTime < slo*m.requests)
		*m = Minute{began: now, last: e.Time}
	}
}
