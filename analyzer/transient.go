package analyzer

import (
	"math"

	"github.com/trimtab/trimtab/analyzer/report"
)

// recovery tells transients that the allocation alone does not show: a
// workload that was short and got more first works off what waits, and one
// that was silent first warms up. Their reports speak of the past.
type recovery struct {
	// left is how many further reports may be of a backlog, warm how many in a
	// row followed a silence.
	left, warm int
}

// upward is how far, in standard deviations, or as a share where noise is
// unknown, a performance must rise to be taken for rising.
const upward, upwardShare = 1.645, 0.05

// take sets r aside while it shows a recovery, at most patience reports in
// a row: being short is what must be learnt, not the way out of it.
func (v *recovery) take(r, before *report.Report, target float64, c *Config) {
	if before.At.IsZero() || r.Aside != "" && r.Aside != "transient" {
		return
	}
	if r.At.Sub(before.At) > c.Round+c.Report {
		if v.warm++; v.warm <= patience {
			r.Aside = "transient"
		}
		v.left = 0
		return
	}
	v.warm = 0
	if r.Performance == nil || before.Performance == nil || r.Allocation == nil || before.Allocation == nil {
		v.left = 0
		return
	}
	if *r.Allocation > (1+report.Small)**before.Allocation && *before.Performance < target {
		v.left = patience
		return
	}
	if v.left == 0 {
		return
	}
	if v.left--; !rising(before, r) {
		v.left = 0
		return
	}
	r.Aside = "transient"
}

// rising reports whether performance went up beyond noise from one report to
// the next, with no more resource per load to explain it.
func rising(a, b *report.Report) bool {
	if a.Load == nil || b.Load == nil || *b.Allocation**a.Load > (1+report.Small)**a.Allocation**b.Load {
		return false
	}
	p, q := *a.Performance, *b.Performance
	margin := upwardShare * q
	switch {
	case a.Requests > 0 && b.Requests > 0:
		m := (p*a.Requests + q*b.Requests) / (a.Requests + b.Requests)
		margin = upward * math.Sqrt(m*(1-m)*(1/a.Requests+1/b.Requests)*apart(a, b))
	case a.Sigma > 0 && b.Sigma > 0:
		margin = upward * math.Hypot(a.Sigma, b.Sigma)
	}
	return q > p+margin
}

// apart is the part of two reports' requests that they do not share, which alone
// makes them differ: of windows W that are Δ apart, Δ/W.
func apart(a, b *report.Report) float64 {
	if b.Window <= 0 {
		return 1
	}
	return min(1, max(0, b.PerfAt.Sub(a.PerfAt).Seconds()/b.Window.Seconds()))
}
