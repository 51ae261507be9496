package walk

import "math"

const (
	// wander is the prior variance of the performance per octave, relative to its highest, worth
	// wanderOctaves octaves of data.
	wander, wanderOctaves = 0.1, 0.25
	// narrow is the least distance between bins, in octaves, and stretch the least range that
	// counts as the surroundings of a gap.
	narrow, stretch = 1e-6, 0.02
)

// Leaf is a fit's knowledge of one bin.
type Leaf struct {
	// Unit is the variance of a report of weight 1 and dispersion 1, Phi the
	// dispersion, Squares and Freedom what that was estimated from.
	Unit, Phi, Squares, Freedom float64
	// X is the place, Y the performance there, R its variance.
	X, Y, R float64
	// LL and LP are the sums for the effect of the load at equal a/l, Scale the change of
	// performance here for an effect of 1.
	LL, LP, Scale float64
}

// Gap is the range between one bin and the next.
type Gap struct {
	// Octaves is its width, Wander the variance of the walk per octave.
	Octaves, Wander float64
	// rise is the squared rise beyond the noise, and told how much of it exceeds the noise, in
	// [0, 1].
	rise, told float64
}

// Steepness says how to distinguish steepness from noise.
type Steepness struct {
	// Telling is how many times its variance a squared rise must be to prove a step at that very
	// gap, >= 1; with a small value, noise looks steep, and nothing is smoothed. Around is the
	// weight of the steepness around the gap, and on the whole curve.
	Telling, Around float64
}

// Estimate estimates, for each of the len(leaf)-1 gaps between bins, how far the curve, whose
// highest performance is top, wanders per octave: the squared rise beyond the noise, pooled over
// neighbours and mixed with the whole curve's, so that steps stay steps and flats flat. A rise
// within the noise counts little, so that noisy reports leave the prior.
func (s Steepness) Estimate(gap []Gap, leaf []Leaf, top float64) {
	if len(gap) == 0 {
		return
	}
	prior := wander * top * top
	for i := range gap {
		a, b, g := &leaf[i], &leaf[i+1], &gap[i]
		d := b.Y - a.Y
		g.Octaves = max(b.X-a.X, narrow)
		g.rise, g.told = d*d-a.R-b.R, shareOf(prior*g.Octaves, a.R+b.R)
	}
	all := tally{prior: prior, rise: prior * wanderOctaves, octaves: wanderOctaves}
	all.pool(leaf)
	whole := max(all.rise/all.octaves, 0.01*prior)
	for i := range gap {
		r, d := 0.0, 0.0
		around := gap[max(0, i-2):min(len(gap), i+3)]
		for j := range around {
			g := &around[j]
			r += g.told * g.rise
			d += g.told * g.Octaves
		}
		g := &gap[i]
		own := (g.rise - (s.Telling-1)*(leaf[i].R+leaf[i+1].R)) / g.Octaves
		g.Wander = max(own, s.Around*(whole+max(r, 0)/max(d, stretch)))
	}
}

// shareOf is the walk's share of the variance of a rise that is seen with noise.
func shareOf(walk, noise float64) float64 { return walk / (walk + noise) }

// tally sums squared rises beyond the noise, and the octaves that they span, each weighted by the
// square of the walk's share of it, since the variance of a squared rise is that of the rise,
// squared.
type tally struct{ prior, rise, octaves float64 }

// pool adds the rise from the left half of the bins to the right one, and those
// within the halves, and returns where the bins are on average, their mean and
// its variance. Halves of halves are far apart and known well where single
// bins are not: what is steep over an octave is seen through much noise.
func (t *tally) pool(leaf []Leaf) (x, y, r float64) {
	if len(leaf) == 1 {
		return leaf[0].X, leaf[0].Y, leaf[0].R
	}
	half := len(leaf) / 2
	x, y, r = t.pool(leaf[:half])
	x2, y2, r2 := t.pool(leaf[half:])
	noise := r + r2
	d, octaves := y2-y, max(x2-x, narrow)
	w := shareOf(t.prior*octaves, noise)
	w *= w
	t.rise += w * (d*d - noise)
	t.octaves += w * octaves
	share := 0.5
	if noise > 0 {
		share = r / noise
	}
	return x + share*(x2-x), y + share*(y2-y), share * r2
}

// Path is a random walk that is observed with noise at points in order.
type Path struct {
	// Mean and Variance are the observation at each point, and after Smooth the estimate there.
	Mean, Variance []float64
	// way is the variance of the walk to each place from the one before.
	way []float64
}

// Make makes n points without observations.
func (p *Path) Make(n int) {
	if cap(p.way) < n {
		p.Mean, p.Variance, p.way = make([]float64, n), make([]float64, n), make([]float64, n)
	}
	p.Mean, p.Variance, p.way = p.Mean[:n], p.Variance[:n], p.way[:n]
}

// Set sets point i, which the walk reaches with the variance way, and where y was observed with
// the variance r; infinite: no observation.
func (p *Path) Set(i int, y, r, way float64) { p.Mean[i], p.Variance[i], p.way[i] = y, r, way }

// Smooth computes mean and variance at all points: the Kalman filter forward and the
// Rauch-Tung-Striebel smoother back. No variance but the last falls below least. The first point
// must have an observation.
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
