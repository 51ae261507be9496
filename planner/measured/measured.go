// Package measured says what the newest report of a workload tells of its SLO: whether it misses it
// beyond the noise of its requests,
//
//	p < q − z √(q (1−q) / n)      p performance, q the SLO, n requests
//
// how it misses it, in words, and what that leaves of what its curve says that it needs.
package measured

import (
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
)

// surely is z: how many standard errors a performance must lie below the SLO to miss it beyond
// noise, one in twenty.
const surely = 1.645

// Misses reports whether the last report, or the requests since, miss the SLO beyond their noise.
func Misses(e *trimtab.Estimate, slo float64) bool {
	return e.Performance != nil && below(*e.Performance, e.Requests, slo) || Early(e, slo)
}

// Early reports whether the requests that have come since the report miss the SLO.
func Early(e *trimtab.Estimate, slo float64) bool {
	return e.Newer != nil && below(e.Newer.Under/e.Newer.Requests, e.Newer.Requests, slo)
}

// below reports whether a performance, the share of so many requests or of an unknown number (0),
// is below the SLO beyond its noise.
func below(performance, requests, slo float64) bool {
	margin := 0.0
	if requests > 0 && slo < 1 {
		margin = surely * math.Sqrt(slo*(1-slo)/requests)
	}
	return performance < slo-margin
}

// Late describes how a workload misses its SLO by the latest measurement, as the rest of a
// sentence that says that it does; "": it does not. It includes misses within the noise, since
// the state shows them too.
func Late(e *trimtab.Estimate, slo float64) string {
	switch below := e.Performance != nil && *e.Performance < slo; {
	case Early(e, slo) && !below:
		return fmt.Sprintf(" by what has come since the last report, %.0f of %.0f requests in time", e.Newer.Under, e.Newer.Requests)
	case below && !Misses(e, slo):
		return ", by less than the noise of its requests"
	case below:
		return " by its last report"
	}
	return ""
}

// Need is what a workload that keeps its amount needs for its SLO, by its curve.
type Need struct {
	// Amount is that, in words; Unknown: no amount is known. More: it is more than it has.
	Amount        string
	Unknown, More bool
	// Idle: the need beyond what it has is within the noise, or, if Shared, a share by weight may
	// also use what the others leave idle.
	Idle, Shared bool
}

// Words describes the need. The measurement may contradict the curve: a workload that misses its
// SLO is never said to need less than it has for it, and one that meets it never to need more.
func (n Need) Words(e *trimtab.Estimate, slo float64) string {
	late, measured := Late(e, slo) != "", e.Performance != nil
	switch {
	case n.Unknown && n.Idle && late:
		return "more is not expected to help it"
	case n.Unknown && !n.Idle && (late || !measured):
		return "no amount is expected to meet its SLO"
	case n.Unknown:
		return "how much is sure to meet its SLO is not known yet"
	case !n.More && late:
		return "by its curve it needs only " + n.Amount
	case n.More && !n.Idle && measured && !late:
		return "by its curve it needs " + n.Amount + ", though it meets its SLO now"
	case n.Idle && n.More && late:
		return "by its curve it needs " + n.Amount
	case n.Idle && n.More && n.Shared:
		return "by its curve it needs " + n.Amount + ", more than its share: what the others leave idle makes up for that"
	case n.Idle && n.More:
		return "by its curve it needs " + n.Amount + ", which is within the noise of its load"
	}
	return "it needs " + n.Amount + " for its SLO"
}
