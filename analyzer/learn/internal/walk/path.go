package walk

import "math"

const (
	// wander is the prior variance of the performance per octave, relative to
	// its highest, worth wanderOctaves octaves of data.
	wander, wanderOctaves = 0.1, 0.25
	// narrow is the least distance between bins, in octaves.
	narrow = 1e-6
)

// Leaf is what a fit knows of one bin.
type Leaf struct {
	// Unit is the variance of a report of weight 1 and dispersion 1, Phi the
	// dispersion, Squares and Freedom what that was estimated from.
	Unit, Phi, Squares, Freedom float64
	// X is the place, Y the performance there, R its variance.
	X, Y, R float64
	// LL and LP are the sums of what the load did at equal a/l, Scale what an
	// effect of the load of 1 does here.
	LL, LP, Scale float64
}

// Gap is the way from one bin to the next.
type Gap struct {
	// Octaves is its width, Wander the variance of the walk per octave.
	Octaves, Wander float64
	// rise is the squared rise beyond the noise.
	rise float64
}

// Steepness is how to tell what is steep from what is noise.
type Steepness struct {
	// Telling is how many times its variance a squared rise must be to tell of
	// a step at that very gap, >= 1; with little to tell, what is noise looks
	// steep, and nothing is smoothed. Around is the weight of how steep it is
	// about the gap, and on the whole curve.
	Telling, Around float64
}

// Estimate finds, for each of the len(leaf)-1 gaps between bins, how far the
// curve, whose highest performance is top, wanders per octave: the squared
// rise beyond the noise, pooled over neighbours and mixed with the whole
// curve's, so that steps stay steps and flats flat.
func (s Steepness) Estimate(gap []Gap, leaf []Leaf, top float64) {
	prior := wander * top * top
	rise, octaves := prior*wanderOctaves, wanderOctaves
	for i := range gap {
		a, b, g := &leaf[i], &leaf[i+1], &gap[i]
		d := b.Y - a.Y
		g.rise, g.Octaves = d*d-a.R-b.R, max(b.X-a.X, narrow)
		rise += g.rise
		octaves += g.Octaves
	}
	whole := max(rise/octaves, 0.01*prior)
	for i := range gap {
		r, d := 0.0, 0.0
		around := gap[max(0, i-2):min(len(gap), i+3)]
		for j := range around {
			r += around[j].rise
			d += around[j].Octaves
		}
		g := &gap[i]
		own := (g.rise - (s.Telling-1)*(leaf[i].R+leaf[i+1].R)) / g.Octaves
		g.Wander = max(own, s.Around*(whole+max(r, 0)/d))
	}
}

// Path is a random walk that is seen with noise at places in order.
type Path struct {
	// Mean and Variance are what is seen at each place, and after Smooth what
	// is known there.
	Mean, Variance []float64
	// way is the variance of the walk to each place from the one before.
	way []float64
}

// Make makes n places of which nothing is known yet.
func (p *Path) Make(n int) {
	if cap(p.way) < n {
		p.Mean, p.Variance, p.way = make([]float64, n), make([]float64, n), make([]float64, n)
	}
	p.Mean, p.Variance, p.way = p.Mean[:n], p.Variance[:n], p.way[:n]
}

// Set makes place i one that the walk reaches with the variance way, where y is
// seen with the variance r; infinite: nothing is seen.
func (p *Path) Set(i int, y, r, way float64) { p.Mean[i], p.Variance[i], p.way[i] = y, r, way }

// Smooth finds mean and variance at all places: the Kalman filter forward and
// the Rauch-Tung-Striebel smoother back. No variance but the last falls below
// least. The first place must be seen.
func (p *Path) Smooth(least float64) {
	n := len(p.Mean)
	all, variances, way := p.Mean[:n], p.Variance[:n], p.way[:n]
	mean, variance := all[0], variances[0]
	for i := 1; i < n; i++ {
		variance += way[i]
		if r := variances[i]; !math.IsInf(r, 1) {
			gain := variance / (variance + r)
			mean += gain * (all[i] - mean)
			variance = (1 - gain) * variance
		}
		all[i], variances[i] = mean, variance
	}
	for i := n - 2; i >= 0; i-- {
		ahead := variances[i] + way[i+1]
		c := variances[i] / ahead
		mean = all[i] + c*(mean-all[i])
		if variance = variances[i] + c*c*(variance-ahead); variance < least {
			variance = least
		}
		all[i], variances[i] = mean, variance
	}
}
