package analyzer

import (
	"math"
	"slices"
)

const (
	// elasticity is what is expected of a member without spans, or of all: that
	// so many percent less of everything make the latency longer by one.
	elasticity = 1.0
	// leastShare is the part of the mean weight that every member has.
	leastShare = 0.01
	// careful is how many standard deviations longer than estimated the service
	// times of the prior are.
	careful = 2
)

// visits are those of member i per request of the entry; 0: it has no spans.
func (p *application) visits(i int) float64 {
	if p.rate <= 0 {
		return 0
	}
	return p.parts[i].rate / p.rate
}

// tail is how many standard deviations the latency that the SLO counts is above
// its mean: between that of one exponential time and that of very many.
func (p *application) tail() float64 {
	q := p.entry.spec.SLO.Fraction
	if !(q > 0 && q < 1) {
		q = 0.99
	}
	return (-math.Log(1-q) - 1 + math.Sqrt2*math.Erfinv(2*q-1)) / 2
}

// spread is the variance of v visits on average, each exponential with mean 1:
// some requests make one, the others none.
func spread(v float64) float64 { return v * math.Max(1, 2-v) }

// expected is ln(latency/SLO) by the spans, but for a constant, at ln(a/load):
//
//	ln(Σ v_i T_i(a_i) + k √(Σ (2−v_i) v_i T_i²)) − (elasticity/n) Σ x_j
//
// where i has spans and j none.
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

// shares weigh what is left to learn of each member. They are its part in the variance
// of the latency by its spans and, once live traffic tells what each component adds to the
// tail, the mean of that and of its part in it: a member that the tail grows in is tried
// first.
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

// added are the parts of the members in what all of them add to the tail of the entry,
// C_i / Σ C (Rhythm, equation 5); nil where that is not known. One that varies against
// the tail adds nothing.
func (p *application) added() []float64 {
	if p.news == nil || p.news.Levels < 2 {
		return nil
	}
	out, all := make([]float64, len(p.members)), 0.0
	for i := range p.news.Servpods {
		s := &p.news.Servpods[i]
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

// variances are the parts of the members in the variance of the latency; without spans,
// all have the same.
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
