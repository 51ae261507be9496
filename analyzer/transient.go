package analyzer

import (
	"math"

	"github.com/trimtab/trimtab/analyzer/report"
)

// recovery detects transients that the allocation alone does not show: a workload that had too
// little and got more first works off its backlog, and one without requests first warms up. Their
// reports describe the past.
type recovery struct {
	// left is how many further reports may describe a backlog. warm is the number of reports in a
	// row after silences.
	left, warm int
}

// upward is the number of standard deviations by which a performance must rise to count as rising;
// upwardShare is the relative rise if the noise is unknown.
const upward, upwardShare = 1.645, 0.05

// observe marks r as transient while it shows a recovery, for at most patience reports in a row: the
// curve must learn from shortage, not from the way out of it.
func (v *recovery) observe(r, before *report.Report, target float64, c *Config) {
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

// rising reports whether performance rose by more than noise from report a to report b, without
// more resource per load to explain it.
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

// apart returns the fraction of two reports' requests that they do not share, which alone makes
// them differ: Δ/W for windows W that are Δ apart.
func apart(a, b *report.Report) float64 {
	if b.Window <= 0 {
		return 1
	}
	return min(1, max(0, b.PerfAt.Sub(a.PerfAt).Seconds()/b.Window.Seconds()))
}
