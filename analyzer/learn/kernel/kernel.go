package kernel

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/num"
)

// Config says what is learnt. The zero value of an optional field is its
// default.
type Config struct {
	// Dimensions is the number of components, 1 to 256; MaxUnits the most that
	// one of them can have, 1 to 4096.
	Dimensions, MaxUnits int
	// Level is the share of the truth inside the bounds, in (0, 1).
	Level float64
	// Points bounds what is kept, 2 to 512; default 128.
	Points int
	// Joint is the weight of the joint term, in [0, 1]; 1 is the paper's kernel.
	Joint float64
	// Length is that of the additive terms, JointLength that of the joint one,
	// in units of ln(allocation); defaults 0.7 and 2.
	Length, JointLength float64
}

func (c *Config) complete() error {
	if c.Points == 0 {
		c.Points = 128
	}
	if c.Length == 0 {
		c.Length = 0.7
	}
	if c.JointLength == 0 {
		c.JointLength = 2
	}
	switch {
	case c.Dimensions < 1 || c.Dimensions > 256 || c.MaxUnits < 1 || c.MaxUnits > 4096:
		return trimtab.Invalidf("kernel: %d dimensions of up to %d units", c.Dimensions, c.MaxUnits)
	case !(c.Level > 0 && c.Level < 1):
		return trimtab.Invalidf("kernel: level %v: want a share in (0, 1)", c.Level)
	case c.Points < 2 || c.Points > 512:
		return trimtab.Invalidf("kernel: %d points: want 2 to 512", c.Points)
	case !(c.Joint >= 0 && c.Joint <= 1):
		return trimtab.Invalidf("kernel: joint %v: want a share in [0, 1]", c.Joint)
	case !(c.Length > 0) || math.IsInf(c.Length, 0) || !(c.JointLength > 0) || math.IsInf(c.JointLength, 0):
		return trimtab.Invalidf("kernel: lengths %v and %v", c.Length, c.JointLength)
	}
	return nil
}

// Prior is what is expected at an allocation before any report of it.
type Prior func(units []int) float64

// Vector learns one number over a vector of units. It is not safe for
// concurrent use.
type Vector struct {
	config Config
	z      float64
	state

	prior Prior
	parts []float64

	// matern and square are, for the units of two components, the additive
	// term and the square of the distance.
	matern, square []float64
	fit            *fit
	scratch        [2][]float64
}

type state struct {
	Config Config
	Points []point
	Seen   int
	// Spread sums squares of what repeats of a point were off its mean.
	Spread, Repeats float64
}

// point is one allocation with the mean of its reports.
type point struct {
	Units  []int
	Y      float64
	Weight float64
	Last   int
}

// kept is the weight that reports of a point have at most: older ones fade.
const kept = 12.0

// New returns a learner that has seen nothing. Errors are trimtab.ErrInvalid.
func New(c Config) (*Vector, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	v := &Vector{config: c, z: math.Sqrt2 * math.Erfinv(c.Level), state: state{Config: c}}
	v.parts = slices.Repeat([]float64{1 / float64(c.Dimensions)}, c.Dimensions)
	v.prior = func([]int) float64 { return 0 }
	n := c.MaxUnits + 1
	v.matern, v.square = make([]float64, n*n), make([]float64, n*n)
	for a := range n {
		for b := range n {
			d := math.Abs(math.Log(float64(a+1)) - math.Log(float64(b+1)))
			v.matern[a*n+b] = matern(d / c.Length)
			v.square[a*n+b] = d * d
		}
	}
	return v, nil
}

// Name is the learner and its version.
func (*Vector) Name() string { return "kernel/1" }

// Reports returns how many reports were learnt.
func (v *Vector) Reports() int { return v.Seen }

// Expect sets what is expected without reports, and how much of the deviations
// from it each component accounts for: weights >= 0, not all 0. Both hold for
// the reports so far as well. It returns an error that is trimtab.ErrInvalid,
// and changes nothing, for other weights.
func (v *Vector) Expect(prior Prior, weights []float64) error {
	sum := 0.0
	for _, w := range weights {
		if !(w >= 0) || math.IsInf(w, 0) {
			return trimtab.Invalidf("kernel: weight %v", w)
		}
		sum += w
	}
	if len(weights) != v.config.Dimensions || !(sum > 0) || prior == nil {
		return trimtab.Invalidf("kernel: %d weights of sum %v: want %d and a sum > 0", len(weights), sum, v.config.Dimensions)
	}
	parts := make([]float64, len(weights))
	for i, w := range weights {
		parts[i] = w / sum
	}
	v.prior, v.parts, v.fit = prior, parts, nil
	return nil
}

func (v *Vector) check(units []int) error {
	if len(units) != v.config.Dimensions {
		return trimtab.Invalidf("kernel: %d components: want %d", len(units), v.config.Dimensions)
	}
	for _, u := range units {
		if u < 0 || u > v.config.MaxUnits {
			return trimtab.Invalidf("kernel: %d units: want 0 to %d", u, v.config.MaxUnits)
		}
	}
	return nil
}

// Observe takes one report. It returns an error that is trimtab.ErrInvalid, and
// learns nothing, for a number that is not finite and units out of range.
func (v *Vector) Observe(units []int, y float64) error {
	if err := v.check(units); err != nil {
		return err
	}
	if math.IsNaN(y) || math.Abs(y) > 1e12 {
		return trimtab.Invalidf("kernel: report %v", y)
	}
	v.Seen++
	v.fit = nil
	for i := range v.Points {
		p := &v.Points[i]
		if slices.Equal(p.Units, units) {
			d := y - p.Y
			v.Spread += d * d * p.Weight / (p.Weight + 1)
			v.Repeats++
			p.Weight = math.Min(p.Weight+1, kept)
			p.Y += d / p.Weight
			p.Last = v.Seen
			return nil
		}
	}
	if len(v.Points) == v.config.Points {
		oldest := 0
		for i := range v.Points {
			if v.Points[i].Last < v.Points[oldest].Last {
				oldest = i
			}
		}
		v.Points = slices.Delete(v.Points, oldest, oldest+1)
	}
	v.Points = append(v.Points, point{Units: slices.Clone(units), Y: y, Weight: 1, Last: v.Seen})
	return nil
}

// Best returns the units of the point with the least mean, and that mean; nil
// before any report.
func (v *Vector) Best() ([]int, float64) {
	best := -1
	for i := range v.Points {
		if best < 0 || v.Points[i].Y < v.Points[best].Y {
			best = i
		}
	}
	if best < 0 {
		return nil, 0
	}
	return slices.Clone(v.Points[best].Units), v.Points[best].Y
}

// Mean returns the estimate at so many units. It panics if there is not one
// number of units in range for each component.
func (v *Vector) Mean(units []int) float64 {
	f := v.fitted()
	out := v.prior(units) + f.level
	for i := range v.Points {
		out += f.alpha[i] * v.covariance(units, v.Points[i].Units) * f.scale
	}
	return out
}

// Predict returns estimate and bounds at so many units: the prior with the
// scale of what was seen, where nothing is near. It panics as Mean does.
func (v *Vector) Predict(units []int) trimtab.Band {
	f := v.fitted()
	n := len(v.Points)
	if n == 0 {
		m := v.prior(units)
		return trimtab.Band{Lower: m - v.z, Mean: m, Upper: m + v.z}
	}
	for len(v.scratch[0]) < n {
		v.scratch[0], v.scratch[1] = append(v.scratch[0], 0), append(v.scratch[1], 0)
	}
	k, solved := v.scratch[0][:n], v.scratch[1][:n]
	mean := v.prior(units) + f.level
	for i := range k {
		k[i] = v.covariance(units, v.Points[i].Units) * f.scale
		mean += k[i] * f.alpha[i]
	}
	// var = k(x,x) − |L⁻¹ k|²
	variance := f.scale
	for i := range solved {
		row := f.lower[i*n : i*n+i+1]
		s := k[i]
		for j, l := range row[:i] {
			s -= l * solved[j]
		}
		solved[i] = s / row[i]
		variance -= solved[i] * solved[i]
	}
	d := v.z * math.Sqrt(math.Max(0, variance))
	return trimtab.Band{Lower: mean - d, Mean: mean, Upper: mean + d}
}

// matern is the kernel of smoothness 5/2.
func matern(r float64) float64 {
	r *= math.Sqrt(5)
	return (1 + r + r*r/3) * math.Exp(-r)
}

// covariance is k(x, x') / s².
func (v *Vector) covariance(a, b []int) float64 {
	n := v.config.MaxUnits + 1
	add, square := 0.0, 0.0
	for i, u := range a {
		at := u*n + b[i]
		add += v.parts[i] * v.matern[at]
		square += v.square[at]
	}
	j := v.config.Joint
	if j == 0 {
		return add
	}
	return j*matern(math.Sqrt(square)/v.config.JointLength) + (1-j)*add
}

// fit is the process given the points.
type fit struct {
	level, scale float64
	alpha, lower []float64
}

const (
	leastScale, leastNoise = 0.01, 1e-4
	guessNoise             = 0.02
)

// noise is the variance of one report, from repeats; a guess counts as ten.
func (v *Vector) noise() float64 {
	return math.Max(leastNoise, (v.Spread+10*guessNoise)/(v.Repeats+10))
}

// fitted factors K + diag(noise) once for all predictions until a report.
func (v *Vector) fitted() *fit {
	if v.fit != nil {
		return v.fit
	}
	n := len(v.Points)
	f := &fit{scale: 1}
	v.fit = f
	if n == 0 {
		return f
	}
	rest := make([]float64, n)
	for i := range rest {
		rest[i] = v.Points[i].Y - v.prior(v.Points[i].Units)
		f.level += rest[i] / float64(n)
	}
	f.scale = leastScale
	for i := range rest {
		rest[i] -= f.level
		f.scale += rest[i] * rest[i] / float64(n)
	}
	noise := v.noise()
	k := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			c := f.scale * v.covariance(v.Points[i].Units, v.Points[j].Units)
			if i == j {
				c += noise/v.Points[i].Weight + 1e-9*f.scale
			}
			k.SetSym(i, j, c)
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(k) {
		// Cannot be with a positive diagonal added; if rounding makes it so,
		// nothing is known but the level.
		f.alpha, f.lower = make([]float64, n), make([]float64, n*n)
		for i := range n {
			f.lower[i*n+i] = math.Inf(1)
		}
		return f
	}
	var alpha mat.VecDense
	// The condition is judged by Factorize.
	_ = chol.SolveVecTo(&alpha, mat.NewVecDense(n, rest))
	f.alpha = alpha.RawVector().Data
	var l mat.TriDense
	chol.LTo(&l)
	f.lower = l.RawTriangular().Data
	return f
}

// Snapshot returns all points, sealed; what Expect set is not among them.
func (v *Vector) Snapshot() ([]byte, error) { return num.Seal(v.Name(), v.state) }

// Restore takes a snapshot of a learner of the same Config. It returns an error
// that is trimtab.ErrInvalid, and changes nothing, for any other bytes.
func (v *Vector) Restore(b []byte) error {
	var s state
	if err := num.Unseal(v.Name(), b, &s); err != nil {
		return fmt.Errorf("restore kernel: %w: %w", trimtab.ErrInvalid, err)
	}
	if s.Config != v.config || len(s.Points) > v.config.Points || !(s.Spread >= 0 && s.Repeats >= 0) {
		return trimtab.Invalidf("restore kernel: %d points of another configuration", len(s.Points))
	}
	for i := range s.Points {
		p := &s.Points[i]
		if err := v.check(p.Units); err != nil {
			return fmt.Errorf("restore kernel: %w", err)
		}
		if !(p.Weight >= 1 && p.Weight <= kept) || math.IsNaN(p.Y) || math.Abs(p.Y) > 1e12 {
			return trimtab.Invalidf("restore kernel: report %v of weight %v", p.Y, p.Weight)
		}
	}
	v.state, v.fit = s, nil
	return nil
}
