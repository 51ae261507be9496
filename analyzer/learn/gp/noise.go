package gp

import "math"

const (
	// near is how many bins on each side count as the neighbourhood of a bin.
	near = 3
	// loadEffect is the prior deviation of the effect that a load e times as
	// high has at equal a/l; 0 would be exact scaling.
	loadEffect = 0.1
)

// leafFit is what the fit knows of one bin: the variance unit of a report of
// weight 1 and dispersion 1; the dispersion phi; the squares and degrees of
// freedom that it was estimated from; the mean y and its variance r; its
// node; and the sums of what the load did.
type leafFit struct {
	node                        int
	unit, phi, squares, freedom float64
	y, r                        float64
	ll, lp                      float64
}

// disperse estimates the noise of each bin's mean: the spread of reports
// inside the bin and its neighbours, relative to what their weights explain.
func (f *fit) disperse(bins []bin) {
	f.leaf = resize(f.leaf, len(bins))
	f.top = 1
	if f.mode != fraction {
		f.top = least
		for i := range bins {
			f.top = max(f.top, bins[i].P)
		}
	}
	prior, worth := 1.0, 4.0
	if f.mode == plain {
		prior, worth = 0.01, 1 // 10% of the value, until the spread is known
	}
	sum, freedom := prior*worth, worth
	for i := range bins {
		l := &f.leaf[i]
		l.unit = f.unitAt(f.pilot(bins, i))
		l.squares, l.freedom, l.ll, l.lp = bins[i].lines()
		l.squares /= l.unit
	}
	for i := range bins {
		l := &f.leaf[i]
		if l.freedom == 0 && i > 0 && i+1 < len(bins) {
			l.squares, l.freedom = f.difference(&bins[i-1], &bins[i], &bins[i+1], l.unit)
		}
		sum += l.squares
		freedom += l.freedom
	}
	f.phi = f.floor(sum / freedom)
	f.local()
	for i := range bins {
		l := &f.leaf[i]
		l.y, l.r = bins[i].P, l.unit*l.phi/bins[i].W
	}
}

// difference is the noise that a bin of a single report shows: how far it is
// off the line between its neighbours. Neighbouring differences share reports,
// so that each is worth half a degree of freedom.
func (f *fit) difference(a, b, c *bin, unit float64) (squares, freedom float64) {
	t := 0.5
	if d := c.X - a.X; d > 0 {
		t = (b.X - a.X) / d
	}
	off := b.P - (1-t)*a.P - t*c.P
	return 0.5 * off * off / (unit * (1/b.W + (1-t)*(1-t)/a.W + t*t/c.W)), 0.5
}

// pilot is a first estimate at bin i, for its noise: the mean of its
// neighbourhood, so that a low report does not weigh more for being low; for
// fractions, half a request of each outcome added.
func (f *fit) pilot(bins []bin, i int) float64 {
	sum, weight, reach := 0.5, 1.0, 1
	switch f.mode {
	case declared:
		return bins[i].P
	case plain:
		sum, weight, reach = 0, 0, near
	}
	for j := max(0, i-reach); j <= min(len(bins)-1, i+reach); j++ {
		sum += bins[j].P * bins[j].W
		weight += bins[j].W
	}
	return sum / weight
}

// unitAt is the variance of a report of weight 1 and dispersion 1 at p:
// binomial for fractions, the declared one, or in proportion to p squared.
func (f *fit) unitAt(p float64) float64 {
	switch f.mode {
	case fraction:
		p = max(1e-6, min(1-1e-6, p))
		return p * (1 - p)
	case declared:
		return 1
	}
	p = max(p, 0.05*f.top)
	return p * p
}

// floor keeps a fraction's noise at or above the binomial one.
func (f *fit) floor(phi float64) float64 {
	if f.mode == fraction {
		return max(1, phi)
	}
	return max(1e-9, phi)
}

// local sets the dispersion of each bin: that of its neighbourhood mixed with
// the overall one.
func (f *fit) local() {
	const worth = 8
	n := len(f.leaf)
	sum, freedom := worth*f.phi, float64(worth)
	for j := range min(near, n) {
		sum += f.leaf[j].squares
		freedom += f.leaf[j].freedom
	}
	for i := range f.leaf {
		if j := i + near; j < n {
			sum += f.leaf[j].squares
			freedom += f.leaf[j].freedom
		}
		if j := i - near - 1; j >= 0 {
			sum -= f.leaf[j].squares
			freedom -= f.leaf[j].freedom
		}
		f.leaf[i].phi = f.floor(sum / freedom)
	}
}

// scale is what an effect of the load of 1 does at a place of the given noise
// and height: nothing where a fraction is 0 or 1, in proportion to a number.
func (f *fit) scale(unit, p float64) float64 {
	if f.mode == fraction {
		return 2 * math.Sqrt(unit)
	}
	return max(p, 0.05*f.top)
}

// effects estimates what the load does at equal a/l: a straight line over
// ln(load) inside the bins, common to all, shrunk to none. Where a service
// scales, it is none; where not (part of its latency does not shrink with
// more resource), predictions at another load shift, and widen.
func (f *fit) effects(bins []bin) {
	info, sum, weight, at := 1/(loadEffect*loadEffect), 0.0, 0.0, 0.0
	for i := range bins {
		b, l := &bins[i], &f.leaf[i]
		weight += b.N
		at += b.N * b.L
		if l.ll == 0 {
			continue
		}
		g := f.scale(l.unit, b.P)
		by := g / (l.r * b.W) // over the variance of one unit of weight
		info += l.ll * g * by
		sum += l.lp * by
	}
	f.effect, f.effectVar, f.loadRef = sum/info, 1/info, at/weight
	for i := range bins {
		l := &f.leaf[i]
		l.y -= f.effect * f.scale(l.unit, bins[i].P) * (bins[i].L - f.loadRef)
	}
}
