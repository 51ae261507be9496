package analyzer

import (
	"math"
	"slices"
)

const (
	// elasticity is the prior for a member without spans: if all such members have 1% less, latency
	// is this many percent longer.
	elasticity = 1.0
	// leastShare is the least weight of a member, as a fraction of the mean weight.
	leastShare = 0.01
	// careful is how many standard deviations above their estimates the service times of the prior
	// are.
	careful = 2
)

// visits returns how often a request of the entry visits member i, on average; 0: it has no spans.
func (p *application) visits(i int) float64 {
	if p.rate <= 0 {
		return 0
	}
	return p.parts[i].rate / p.rate
}

// tail returns how many standard deviations the latency at the SLO's fraction lies above its mean.
// It is the average of the value for one exponential time and that for a sum of many.
func (p *application) tail() float64 {
	q := p.entry.spec.SLO.Fraction
	if !(q > 0 && q < 1) {
		q = 0.99
	}
	return (-math.Log(1-q) - 1 + math.Sqrt2*math.Erfinv(2*q-1)) / 2
}

// spread returns the variance of the total time of v visits on average, each exponential with mean
// 1. For v < 1 some requests make one visit, the others none.
func spread(v float64) float64 { return v * math.Max(1, 2-v) }

// expected returns the prior of ln(latency/SLO), up to a constant, at x = ln(a/load):
//
//	ln(Σ v_i T_i(a_i) + k √(Σ (2−v_i) v_i T_i²)) − (elasticity/n) Σ x_j
//
// where i runs over members with spans, j over those without.
func (p *application) expected(x []float64) float64 {
	mean, variance, blind := 0.0, 0.0, 0.0
	for i := range p.parts {
		visits := p.visits(i)
		if visits == 0 {
			blind += x[i]
			continue
		}
		t := p.parts[i].curve.Mean(math.Exp(x[i])*p.rate, careful)
		mean += visits * t
		variance += spread(visits) * t * t
	}
	out := -elasticity / float64(len(x)) * blind
	if mean > 0 {
		out += math.Log(mean + p.tail()*math.Sqrt(variance))
	}
	return out
}

// shares returns the weights with which the learner attributes deviations from the prior to
// members. A member's weight is its part of the variance of the latency, by its spans. Once
// contributions are known, it is the mean of that and of the member's part of the contribution to
// the tail, so that members which cause the tail are explored first.
func (p *application) shares(x []float64) []float64 {
	out := p.variances(x)
	if added := p.added(); added != nil {
		all := 0.0
		for _, v := range out {
			all += v
		}
		for i := range out {
			out[i] = (out[i]/all + added[i]) / 2
		}
	}
	return out
}

// added returns each member's part of the sum of contributions to the entry's tail, C_i / Σ C
// (Rhythm, equation 5); nil if unknown. A negative contribution counts as 0.
func (p *application) added() []float64 {
	if p.latest == nil || p.latest.Levels < 2 {
		return nil
	}
	out, all := make([]float64, len(p.members)), 0.0
	for i := range p.latest.Servpods {
		s := &p.latest.Servpods[i]
		of := slices.IndexFunc(p.parts, func(m part) bool {
			_, ours := slices.BinarySearch(m.components, s.Component)
			return ours
		})
		if of >= 0 && s.Contribution > 0 {
			out[of] += s.Contribution
			all += s.Contribution
		}
	}
	if !(all > 0) || math.IsInf(all, 0) {
		return nil
	}
	for i := range out {
		out[i] /= all
	}
	return out
}

// variances returns each member's part of the variance of the latency. Without spans all have the
// same.
func (p *application) variances(x []float64) []float64 {
	out := make([]float64, len(p.members))
	all := 0.0
	for i := range p.parts {
		if visits := p.visits(i); visits > 0 && x != nil {
			t := p.parts[i].curve.Mean(math.Exp(x[i])*p.rate, careful)
			out[i] = spread(visits) * t * t
			all += out[i]
		}
	}
	n := float64(len(out))
	for i := range out {
		switch {
		case all == 0 || math.IsInf(all, 0):
			out[i] = 1 / n
		case p.visits(i) == 0:
			out[i] = 1 / n
		default:
			out[i] = leastShare/n + out[i]/all
		}
	}
	return out
}
