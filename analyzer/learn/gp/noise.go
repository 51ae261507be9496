package gp

import (
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/walk"
)

const (
	// near is how many bins on each side count as the neighbourhood of a bin.
	near = 3
	// loadEffect is the prior deviation of the effect that a load e times as
	// high has at equal a/l; 0 would be exact scaling.
	loadEffect = 0.1
)

// disperse estimates the noise of each bin's mean: the spread of reports inside the bin and its
// neighbours, relative to what their weights explain. Only the bin at changed, unless that is
// everything, has changed.
func (f *fit) disperse(bins []bin, changed int) {
	top := 1.0
	if f.Mode != walk.Fraction {
		top = learn.Least
		for i := range bins {
			top = max(top, bins[i].P)
		}
	}
	from, to := changed-near, changed+near+1
	if changed == everything || len(f.leaf) != len(bins) || top != f.Top {
		from, to = 0, len(bins)
	}
	f.leaf, f.Top = resize(f.leaf, len(bins)), top
	for i := max(0, from); i < min(to, len(bins)); i++ {
		f.spread(bins, i)
	}
	prior, worth := 1.0, 4.0
	if f.Mode == walk.Plain {
		prior, worth = 0.01, 1 // 10% of the value, until the spread is known
	}
	sum, freedom := prior*worth, worth
	for i := range f.leaf {
		l := &f.leaf[i]
		sum += l.Squares
		freedom += l.Freedom
	}
	f.Phi = f.Floor(sum / freedom)
	f.local()
	for i := range bins {
		l := &f.leaf[i]
		l.X, l.Y, l.R = bins[i].X, bins[i].P, l.Unit*l.Phi/bins[i].W
	}
}

// spread sets what leaf i knows from its bin and those at most near away.
func (f *fit) spread(bins []bin, i int) {
	l, b := &f.leaf[i], &bins[i]
	l.Unit = f.UnitAt(f.pilot(bins, i))
	l.Scale = f.Scale(l.Unit, b.P)
	l.Squares, l.Freedom, l.LL, l.LP = b.lines()
	l.Squares /= l.Unit
	if l.Freedom == 0 && i > 0 && i+1 < len(bins) {
		l.Squares, l.Freedom = f.difference(&bins[i-1], b, &bins[i+1], l.Unit)
	}
}

// difference returns the noise that a bin of a single report shows: how far it is off the line
// between its neighbours. Neighbouring differences share reports, so that each is worth half a
// degree of freedom.
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
	switch f.Mode {
	case walk.Declared:
		return bins[i].P
	case walk.Plain:
		sum, weight, reach = 0, 0, near
	}
	for j := max(0, i-reach); j <= min(len(bins)-1, i+reach); j++ {
		sum += bins[j].P * bins[j].W
		weight += bins[j].W
	}
	return sum / weight
}

// local sets the dispersion of each bin: that of its neighbourhood mixed with
// the overall one.
func (f *fit) local() {
	const worth = 8
	n := len(f.leaf)
	sum, freedom := worth*f.Phi, float64(worth)
	for j := range min(near, n) {
		sum += f.leaf[j].Squares
		freedom += f.leaf[j].Freedom
	}
	for i := range f.leaf {
		if j := i + near; j < n {
			sum += f.leaf[j].Squares
			freedom += f.leaf[j].Freedom
		}
		if j := i - near - 1; j >= 0 {
			sum -= f.leaf[j].Squares
			freedom -= f.leaf[j].Freedom
		}
		f.leaf[i].Phi = f.Floor(sum / freedom)
	}
}

// effects estimates the effect of the load at equal a/l: a straight line over ln(load) inside the
// bins, common to all, shrunk towards none. A service that scales has none; for others (part of
// the latency does not shrink with more resource), predictions at another load shift, and widen.
func (f *fit) effects(bins []bin) {
	info, sum, weight, at := 1/(loadEffect*loadEffect), 0.0, 0.0, 0.0
	for i := range bins {
		b, l := &bins[i], &f.leaf[i]
		weight += b.N
		at += b.N * b.L
		if l.LL == 0 {
			continue
		}
		g := l.Scale
		by := g / (l.R * b.W) // over the variance of one unit of weight
		info += l.LL * g * by
		sum += l.LP * by
	}
	f.Effect, f.EffectVar, f.LoadRef = sum/info, 1/info, at/weight
	for i := range bins {
		l := &f.leaf[i]
		l.Y -= f.Effect * l.Scale * (bins[i].L - f.LoadRef)
	}
}
