package analyzer

import "math"

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

// recover sets r aside while it shows a recovery, at most patience reports in
// a row: being short is what must be learnt, not the way out of it.
func (w *workload) recover(r *report) {
	v, before := &w.recovery, &w.last
	if before.at.IsZero() || r.aside != "" && r.aside != "transient" {
		return
	}
	if r.at.Sub(before.at) > w.config.Round+w.config.Report {
		if v.warm++; v.warm <= patience {
			r.aside = "transient"
		}
		v.left = 0
		return
	}
	v.warm = 0
	if r.performance == nil || before.performance == nil || r.allocation == nil || before.allocation == nil {
		v.left = 0
		return
	}
	if *r.allocation > (1+small)**before.allocation && *before.performance < w.Target {
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
	r.aside = "transient"
}

// rising reports whether performance went up beyond noise from one report to
// the next, with no more resource per load to explain it.
func rising(a, b *report) bool {
	if a.load == nil || b.load == nil || *b.allocation**a.load > (1+small)**a.allocation**b.load {
		return false
	}
	p, q := *a.performance, *b.performance
	margin := upwardShare * q
	switch {
	case a.requests > 0 && b.requests > 0:
		m := (p*a.requests + q*b.requests) / (a.requests + b.requests)
		margin = upward * math.Sqrt(m*(1-m)*(1/a.requests+1/b.requests)*apart(a, b))
	case a.sigma > 0 && b.sigma > 0:
		margin = upward * math.Hypot(a.sigma, b.sigma)
	}
	return q > p+margin
}

// apart is the part of two reports' requests that they do not share, which alone
// makes them differ: of windows W that are Δ apart, Δ/W.
func apart(a, b *report) float64 {
	if b.window <= 0 {
		return 1
	}
	return min(1, max(0, b.perfAt.Sub(a.perfAt).Seconds()/b.window.Seconds()))
}
