package kernel

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/trimtab/trimtab"
)

// Config configures a [Vector]. The zero value of an optional field is its default.
type Config struct {
	// Dimensions is the number of components, 1 to 256.
	Dimensions int
	// Level is the share of the truth inside the bounds, in (0, 1).
	Level float64
	// Points bounds what is kept, 2 to 512; default 128.
	Points int
	// Joint is the weight of the joint term, in [0, 1]; 1 is the paper's kernel.
	Joint float64
	// Length is the length scale of the additive terms, JointLength that of the joint one, in the
	// unit of the coordinates; defaults 0.7 and 2.
	Length, JointLength float64
	// Wander is the part of the variance that no coordinate explains and that varies with time,
	// in [0, 1): machines that warm up, a neighbour. Memory is for how many reports it lasts, >
	// 0; default 10.
	Wander, Memory float64
	// Ceiling is how far above the least of the newest reports values are still distinguished, >=
	// 0: that the highest are far higher shows where it is bad, and nothing of where it is good.
	// 0: none.
	Ceiling float64
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
	if c.Memory == 0 {
		c.Memory = 10
	}
	switch {
	case c.Dimensions < 1 || c.Dimensions > MaxDimensions:
		return trimtab.Invalidf("kernel: %d dimensions: want 1 to %d", c.Dimensions, MaxDimensions)
	case !(c.Level > 0 && c.Level < 1):
		return trimtab.Invalidf("kernel: level %v: want a share in (0, 1)", c.Level)
	case c.Points < 2 || c.Points > 512:
		return trimtab.Invalidf("kernel: %d points: want 2 to 512", c.Points)
	case !(c.Joint >= 0 && c.Joint <= 1):
		return trimtab.Invalidf("kernel: joint %v: want a share in [0, 1]", c.Joint)
	case !(c.Length > 0) || math.IsInf(c.Length, 0) || !(c.JointLength > 0) || math.IsInf(c.JointLength, 0):
		return trimtab.Invalidf("kernel: lengths %v and %v", c.Length, c.JointLength)
	case !(c.Wander >= 0 && c.Wander < 1) || !(c.Memory > 0) || math.IsInf(c.Memory, 0):
		return trimtab.Invalidf("kernel: wander %v, memory %v", c.Wander, c.Memory)
	case !(c.Ceiling >= 0) || math.IsInf(c.Ceiling, 0):
		return trimtab.Invalidf("kernel: ceiling %v", c.Ceiling)
	}
	return nil
}

// MaxDimensions bounds Config.Dimensions.
const MaxDimensions = 256

// Prior returns the expected value at a vector before any report of it.
type Prior func(x []float64) float64

// Vector learns one number over a vector. It is not safe for
// concurrent use.
type Vector struct {
	config Config
	z      float64
	state

	prior Prior
	parts []float64

	fit     *fit
	scratch [3][]float64
}

type state struct {
	Config Config
	Points []point
	Seen   int
}

// point is one vector with the mean of its reports.
type point struct {
	X      []float64
	Y      float64
	Weight float64
	Last   int
}

// kept is the highest weight of a point's reports: older ones fade.
const kept = 12.0

// New returns a learner that has seen nothing. Errors are trimtab.ErrInvalid.
func New(c Config) (*Vector, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	v := &Vector{config: c, z: math.Sqrt2 * math.Erfinv(c.Level), state: state{Config: c}}
	v.parts = slices.Repeat([]float64{1 / float64(c.Dimensions)}, c.Dimensions)
	v.prior = func([]float64) float64 { return 0 }
	return v, nil
}

// Name is the learner and its version.
func (*Vector) Name() string { return "kernel/3" }

// Reports returns how many reports were learnt.
func (v *Vector) Reports() int { return v.Seen }

// Expect sets the prior, and how much of the deviations from it each component accounts for:
// weights >= 0, not all 0. Both apply to earlier reports too. It returns an error that is
// trimtab.ErrInvalid, and changes nothing, for other weights.
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

// most bounds a coordinate: they are logarithms.
const most = 1e3

func (v *Vector) check(x []float64) error {
	if len(x) != v.config.Dimensions {
		return trimtab.Invalidf("kernel: %d components: want %d", len(x), v.config.Dimensions)
	}
	for _, c := range x {
		if !(math.Abs(c) <= most) {
			return trimtab.Invalidf("kernel: coordinate %v: want %v to %v", c, -most, most)
		}
	}
	return nil
}

// near is the greatest distance, in each coordinate, of two vectors that count as one point.
const near = 0.01

func same(a, b []float64) bool {
	for i := range a {
		if math.Abs(a[i]-b[i]) > near {
			return false
		}
	}
	return true
}

// Observe reads one report. It returns an error that is trimtab.ErrInvalid, and
// learns nothing, for a number that is not finite and coordinates out of range.
func (v *Vector) Observe(x []float64, y float64) error {
	if err := v.check(x); err != nil {
		return err
	}
	if math.IsNaN(y) || math.Abs(y) > 1e12 {
		return trimtab.Invalidf("kernel: report %v", y)
	}
	v.Seen++
	v.fit = nil
	for i := range v.Points {
		p := &v.Points[i]
		if same(p.X, x) {
			p.Weight = math.Min(p.Weight+1, kept)
			p.Y += (y - p.Y) / p.Weight
			p.Last = v.Seen
			return nil
		}
	}
	if len(v.Points) == v.config.Points {
		i := v.spare()
		v.Points = slices.Delete(v.Points, i, i+1)
	}
	v.Points = append(v.Points, point{X: slices.Clone(x), Y: y, Weight: 1, Last: v.Seen})
	return nil
}

// Mean returns the estimate at a vector. It panics if that has not one
// coordinate for each component.
func (v *Vector) Mean(x []float64) float64 {
	f := v.fitted()
	out := v.prior(x) + f.level
	for i := range v.Points {
		out += f.alpha[i] * f.scale * v.total(v.covariance(x, v.Points[i].X), v.Seen-v.Points[i].Last)
	}
	return out
}

// Predict returns estimate and bounds at a vector: the prior with the scale of
// what was seen, where nothing is near. It panics as Mean does.
func (v *Vector) Predict(x []float64) trimtab.Band {
	k := v.room(0)
	for i := range k {
		k[i] = v.covariance(x, v.Points[i].X)
	}
	return v.band(v.prior(x), k)
}

// Section returns estimate and bounds where coordinate i of x is one of at and all others stay:
// as Predict, at the cost of one component's covariances each. It panics as Mean does.
func (v *Vector) Section(x []float64, i int, at []float64) []trimtab.Band {
	x = slices.Clone(x)
	n := len(v.Points)
	add, square := v.room(1), v.room(2)
	for p := range n {
		add[p], square[p] = 0, 0
		for c, b := range v.Points[p].X {
			if c != i {
				add[p] += v.parts[c] * Matern(math.Abs(x[c]-b)/v.config.Length)
				square[p] += (x[c] - b) * (x[c] - b)
			}
		}
	}
	out := make([]trimtab.Band, len(at))
	for j := range at {
		x[i] = at[j]
		k := v.room(0)
		for p := range n {
			d := math.Abs(at[j] - v.Points[p].X[i])
			k[p] = v.mixed(add[p]+v.parts[i]*Matern(d/v.config.Length), square[p]+d*d)
		}
		out[j] = v.band(v.prior(x), k)
	}
	return out
}

// spare returns the point to drop: of the older half, the one that is closest to a newer one. So
// a bad point that is not visited again is kept while it is all that is known of its
// surroundings.
func (v *Vector) spare() int {
	last := make([]int, len(v.Points))
	for i := range v.Points {
		last[i] = v.Points[i].Last
	}
	slices.Sort(last)
	newest := last[len(last)/2]
	at, least := 0, math.Inf(1)
	for i := range v.Points {
		for j := range v.Points {
			if v.Points[i].Last >= newest || v.Points[j].Last <= v.Points[i].Last {
				continue
			}
			if d := distance(v.Points[i].X, v.Points[j].X, least); d < least {
				at, least = i, d
			}
		}
	}
	return at
}

// distance is the square of Euclid's, or something not below enough.
func distance(a, b []float64, enough float64) float64 {
	d := 0.0
	for i, x := range a {
		if d += (x - b[i]) * (x - b[i]); d >= enough {
			break
		}
	}
	return d
}

// room returns scratch memory of one number for each point.
func (v *Vector) room(i int) []float64 {
	n := len(v.Points)
	for len(v.scratch[i]) < n {
		v.scratch[i] = append(v.scratch[i], 0)
	}
	return v.scratch[i][:n]
}

// band is the estimate where the covariances with the points are k, which it
// overwrites.
func (v *Vector) band(prior float64, k []float64) trimtab.Band {
	f := v.fitted()
	if len(k) == 0 {
		return trimtab.Band{Lower: prior - v.z, Mean: prior, Upper: prior + v.z}
	}
	mean := prior + f.level
	for i := range k {
		k[i] = f.scale * v.total(k[i], v.Seen-v.Points[i].Last)
		mean += k[i] * f.alpha[i]
	}
	// var = k(x,x) − |L⁻¹ k|²
	f.chol.Forward(k)
	variance := f.scale - floats.Dot(k, k)
	d := v.z * math.Sqrt(math.Max(0, variance))
	return trimtab.Band{Lower: mean - d, Mean: mean, Upper: mean + d}
}

// Matern is the kernel of smoothness 5/2.
func Matern(r float64) float64 {
	r *= math.Sqrt(5)
	return (1 + r + r*r/3) * math.Exp(-r)
}

// covariance is k(x, x') / s², but for the time between.
func (v *Vector) covariance(a, b []float64) float64 {
	add, square := 0.0, 0.0
	for i, x := range a {
		d := math.Abs(x - b[i])
		add += v.parts[i] * Matern(d/v.config.Length)
		square += d * d
	}
	return v.mixed(add, square)
}

// mixed weighs the additive terms and the joint one.
func (v *Vector) mixed(add, square float64) float64 {
	j := v.config.Joint
	if j == 0 {
		return add
	}
	return j*Matern(math.Sqrt(square)/v.config.JointLength) + (1-j)*add
}

// total adds what wanders, for reports so many apart.
func (v *Vector) total(k float64, apart int) float64 {
	w := v.config.Wander
	if w == 0 {
		return k
	}
	return (1-w)*k + w*math.Exp(-math.Abs(float64(apart))/v.config.Memory)
}

// fit is the process given the points.
type fit struct {
	level, scale, noise float64
	alpha               []float64
	chol                Cholesky
	likes               float64
}

const (
	// guessScale is the variance expected before reports, which counts as so
	// many of them.
	guessScale, guessWeight = 0.2, 4.0
	// guessNoise is the variance expected of one report, sure to a factor of e
	// to the guessSpread.
	guessNoise, guessSpread = 0.01, 0.7
)

// fitted factors K + diag(noise) once for all predictions until the next report, for the noise
// share that makes the reports most likely.
func (v *Vector) fitted() *fit {
	if v.fit != nil {
		return v.fit
	}
	n := len(v.Points)
	v.fit = &fit{scale: 1, likes: math.Inf(-1)}
	if n == 0 {
		return v.fit
	}
	rest, level := v.residuals()
	k := Cholesky{n, make([]float64, n*n)}
	for i := range n {
		for j := range i + 1 {
			k.L[i*n+j] = v.total(v.covariance(v.Points[i].X, v.Points[j].X), v.Points[i].Last-v.Points[j].Last)
		}
	}
	// Where rounding leaves no part to factor, nothing is known but the level.
	v.fit = &fit{scale: 1, level: level, likes: math.Inf(-1), alpha: make([]float64, n), chol: Cholesky{n, make([]float64, n*n)}}
	for i := range n {
		v.fit.chol.L[i*n+i] = math.Inf(1)
	}
	for _, part := range []float64{0.003, 0.01, 0.03, 0.1, 0.3, 1, 3} {
		if f := v.regress(k, rest, part); f != nil && f.likes > v.fit.likes {
			f.level = level
			v.fit = f
		}
	}
	return v.fit
}

// residuals returns the deviations of points from the prior and its level, which is that of the
// points below the ceiling. A point above the ceiling only says that the value is at least the
// ceiling.
func (v *Vector) residuals() (rest []float64, level float64) {
	ceiling := math.Inf(1)
	if v.config.Ceiling > 0 {
		for i := range v.Points {
			if p := &v.Points[i]; v.Seen-p.Last < v.config.Points/2 {
				ceiling = math.Min(ceiling, p.Y+v.config.Ceiling)
			}
		}
	}
	rest = make([]float64, len(v.Points))
	below := 0.0
	for i := range rest {
		p := &v.Points[i]
		rest[i] = v.prior(p.X)
		if p.Y <= ceiling {
			below++
			level += (p.Y - rest[i] - level) / below
		}
	}
	for i := range rest {
		expected := rest[i] + level
		if rest[i] = v.Points[i].Y - expected; v.Points[i].Y > ceiling {
			rest[i] = math.Max(0, ceiling-expected)
		}
	}
	return rest, level
}

// regress returns the fit if one report has part of the variance as noise, and the variance is
// the likeliest: with K' = K/s² + diag(part/weight),
//
//	s² = (restᵀ K'⁻¹ rest + guess) / (n + its weight)
//
// nil: K' cannot be factored.
func (v *Vector) regress(k Cholesky, rest []float64, part float64) *fit {
	n := len(rest)
	f := &fit{alpha: slices.Clone(rest), chol: Cholesky{n, slices.Clone(k.L)}}
	for i := range n {
		f.chol.L[i*n+i] += part/v.Points[i].Weight + 1e-9
	}
	if !f.chol.Factorize() {
		return nil
	}
	f.chol.Solve(f.alpha)
	square := floats.Dot(f.alpha, rest)
	f.scale = (square + guessWeight*guessScale) / (float64(n) + guessWeight)
	f.noise = part * f.scale
	off := math.Log(f.noise/guessNoise) / guessSpread
	f.likes = -0.5 * (float64(n)*math.Log(f.scale) + square/f.scale + f.chol.LogDet() + off*off)
	floats.Scale(1/f.scale, f.alpha)
	floats.Scale(math.Sqrt(f.scale), f.chol.L)
	return f
}
