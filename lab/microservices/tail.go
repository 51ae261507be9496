package microservices

import "math"

// part is a share of the requests with the two moments of their latency.
type part struct {
	weight, mean, variance float64
}

// sum adds up the sojourn times of one class: exponential with mean T at each
// service, v visits on average,
//
//	mean = Σ v T,    variance = Σ v (2 − v) T²  for v <= 1.
func (n *Network) sum(class int, sojourn *[Count]float64) part {
	c := &n.Classes[class]
	p := part{weight: c.Share}
	for i, v := range c.Visits {
		if v == 0 || n.Services[i].Aside {
			continue
		}
		t := sojourn[i]
		p.mean += v * t
		p.variance += v * (2 - v) * t * t
	}
	return p
}

// over is the share of a part above x: that of the gamma distribution with its
// moments, by the cube root of Wilson and Hilferty (1931).
func (p *part) over(x float64) float64 {
	shape := p.mean * p.mean / p.variance
	z := (math.Cbrt(x/p.mean) - 1 + 1/(9*shape)) * 3 * math.Sqrt(shape)
	return 0.5 * math.Erfc(z/math.Sqrt2)
}

// tail returns the latency that a share of all requests exceeds.
func tail(parts []part, share float64) float64 {
	low, high := 0.0, 0.0
	for i := range parts {
		high = math.Max(high, parts[i].mean+12*math.Sqrt(parts[i].variance))
	}
	for range 14 {
		x := (low + high) / 2
		over := 0.0
		for i := range parts {
			over += parts[i].weight * parts[i].over(x)
		}
		if over > share {
			low = x
		} else {
			high = x
		}
	}
	return high
}
