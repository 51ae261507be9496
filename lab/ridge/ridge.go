// Package ridge learns the curve of one workload by kernel ridge regression over one coordinate,
// x = ln(a/l), as Cilantro (OSDI'23, section 6) does, for comparison: production learns by learn/gp.
//
//	l, err := ridge.New(0.9)
package ridge

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/kernel"
	"github.com/trimtab/trimtab/internal/num"
)

// Curve is the learner. Reports are collected in at most 96 bins of x; older ones fade by one in 80
// reports, so that a change is learnt. With neither sigma nor requests, the noise is that of
// reports in one bin. Outside the visited range it only claims that performance does not fall
// with x. It implements learn.Learner; make one with [New]. It is not safe for concurrent
// use.
type Curve struct {
	learn.Plain

	z float64
	curveState
	fit *curveFit
}

type curveState struct {
	Level float64
	Bins  []bin // in order of x
	Seen  int
	// Rate: some report was not a fraction of requests, so that performance has no known maximum;
	// Top is the highest seen.
	Rate bool
	Top  float64
	// Spread sums squares within bins of reports without a known noise, as
	// shares of their mean; Repeats counts them.
	Spread, Repeats float64
}

// bin is the reports at about one x. Weight is their number, and Noise the sum of their
// variances, both faded.
type bin struct {
	X, Y, Weight, Noise float64
}

const (
	curveBins = 96
	fade      = 1.0 / 80
	// least is the weight below which a bin is forgotten.
	leastWeight = 0.05
	// together is how far apart two reports of one bin are at most.
	together = 0.02
	// guessShare is the deviation that is expected of a report before any
	// repeats, as a share of its value.
	guessShare = 0.1
	mostNumber = 1e15
	// mostX bounds the coordinate: it is a logarithm.
	mostX = 1e3
)

var _ learn.Learner = (*Curve)(nil)

// New returns a learner with bounds at a level in (0, 1) that has seen
// nothing.
func New(level float64) (*Curve, error) {
	if !(level > 0 && level < 1) {
		return nil, trimtab.Invalidf("kernel: level %v: want a share in (0, 1)", level)
	}
	return &Curve{z: math.Sqrt2 * math.Erfinv(level), curveState: curveState{Level: level}}, nil
}

// Name is the learner and its version.
func (*Curve) Name() string { return "kernel-curve/1" }

// Reports returns how many reports were learnt.
func (c *Curve) Reports() int { return c.Seen }

// Observe reads one report; see learn.Learner.
func (c *Curve) Observe(o learn.Observation) error {
	for _, v := range []float64{o.Allocation, o.Load, o.Performance, o.Requests, o.Sigma} {
		if !(v >= 0 && v <= mostNumber) {
			return fmt.Errorf("observe: %w", trimtab.Invalidf("report %+v", o))
		}
	}
	if !(o.Allocation > 0 && o.Load > 0) || o.Requests > 0 && o.Performance > 1 {
		return fmt.Errorf("observe: %w", trimtab.Invalidf("performance %v of %v requests, allocation %v, load %v", o.Performance, o.Requests, o.Allocation, o.Load))
	}
	c.fit = nil
	c.Seen++
	c.Rate = c.Rate || o.Requests == 0
	c.Top = math.Max(c.Top, o.Performance)
	for i := range c.Bins {
		c.Bins[i].Weight *= 1 - fade
		c.Bins[i].Noise *= 1 - fade
	}
	c.Bins = slices.DeleteFunc(c.Bins, func(b bin) bool { return b.Weight < leastWeight })
	c.add(bin{X: math.Log(o.Allocation / o.Load), Y: o.Performance, Weight: 1, Noise: c.variance(&o)})
	return nil
}

// variance is that of one report.
func (c *Curve) variance(o *learn.Observation) float64 {
	switch {
	case o.Sigma > 0:
		return o.Sigma * o.Sigma
	case o.Requests > 0:
		// That of the share with one more success and one more failure.
		p := (o.Performance*o.Requests + 1) / (o.Requests + 2)
		return p * (1 - p) / (o.Requests + 2)
	}
	share := (c.Spread + 4*guessShare*guessShare) / (c.Repeats + 4)
	return share * math.Max(o.Performance*o.Performance, 1e-4*c.Top*c.Top)
}

// add joins a report with the bin near it, or makes one; if there are too many, the two closest
// are merged.
func (c *Curve) add(b bin) {
	i, _ := slices.BinarySearchFunc(c.Bins, b.X, func(b bin, x float64) int {
		if b.X < x {
			return -1
		}
		return 1
	})
	for _, at := range []int{i - 1, i} {
		if at >= 0 && at < len(c.Bins) && math.Abs(c.Bins[at].X-b.X) <= together {
			old := &c.Bins[at]
			if m := old.Y * old.Y; m > 0 {
				d := b.Y - old.Y
				c.Spread = c.Spread*(1-fade) + d*d/m*old.Weight/(old.Weight+1)
				c.Repeats = c.Repeats*(1-fade) + 1
			}
			*old = old.join(b)
			return
		}
	}
	c.Bins = slices.Insert(c.Bins, i, b)
	if len(c.Bins) <= curveBins {
		return
	}
	at := 1
	for k := 2; k < len(c.Bins); k++ {
		if c.Bins[k].X-c.Bins[k-1].X < c.Bins[at].X-c.Bins[at-1].X {
			at = k
		}
	}
	c.Bins[at-1] = c.Bins[at-1].join(c.Bins[at])
	c.Bins = slices.Delete(c.Bins, at, at+1)
}

func (b bin) join(o bin) bin {
	w := b.Weight + o.Weight
	return bin{X: (b.X*b.Weight + o.X*o.Weight) / w, Y: (b.Y*b.Weight + o.Y*o.Weight) / w, Weight: w, Noise: b.Noise + o.Noise}
}

// curveFit is the process given the bins.
type curveFit struct {
	level, scale, length float64
	alpha                []float64
	chol                 kernel.Cholesky
	// bands are at the bins, made non-decreasing.
	bands []trimtab.Band
	likes float64
}

// fitted is the regression of the length that makes the reports most likely.
func (c *Curve) fitted() *curveFit {
	if c.fit != nil {
		return c.fit
	}
	for _, length := range []float64{0.25, 0.5, 1, 2} {
		if f := c.regress(length); c.fit == nil || f.likes > c.fit.likes {
			c.fit = f
		}
	}
	c.ascend()
	return c.fit
}

func (c *Curve) regress(length float64) *curveFit {
	n := len(c.Bins)
	f := &curveFit{length: length}
	weights := 0.0
	for _, b := range c.Bins {
		f.level += b.Weight * b.Y
		weights += b.Weight
	}
	f.level /= weights
	rest := make([]float64, n)
	for i, b := range c.Bins {
		d := b.Y - f.level
		rest[i] = d
		f.scale += d * d * b.Weight / weights
	}
	f.scale = math.Max(f.scale, 0.01*c.Top*c.Top+1e-9)
	f.chol = kernel.Cholesky{N: n, L: make([]float64, n*n)}
	for i, a := range c.Bins {
		row, _ := f.chol.Row(i)
		for j := range row {
			row[j] = f.scale * kernel.Matern(math.Abs(a.X-c.Bins[j].X)/length)
		}
		f.chol.L[i*n+i] = f.scale*(1+1e-6) + a.Noise/(a.Weight*a.Weight)
	}
	f.alpha = make([]float64, n)
	f.likes = math.Inf(-1)
	if !f.chol.Factorize() {
		return f
	}
	copy(f.alpha, rest)
	f.chol.Solve(f.alpha)
	f.likes = -0.5*floats.Dot(rest, f.alpha) - 0.5*f.chol.LogDet()
	return f
}

// at returns the regression's own band at x.
func (c *Curve) at(f *curveFit, x float64) trimtab.Band {
	k := make([]float64, len(c.Bins))
	mean := f.level
	for i, b := range c.Bins {
		v := f.scale * kernel.Matern(math.Abs(x-b.X)/f.length)
		k[i] = v
		mean += v * f.alpha[i]
	}
	variance := f.scale
	if !math.IsInf(f.likes, -1) {
		f.chol.Forward(k) // var = k(x,x) − |L⁻¹ k|²
		variance -= floats.Dot(k, k)
	}
	d := c.z * math.Sqrt(math.Max(0, variance))
	return c.clip(trimtab.Band{Lower: mean - d, Mean: mean, Upper: mean + d})
}

// most returns the highest possible performance, or a guess.
func (c *Curve) most() float64 {
	if !c.Rate {
		return 1
	}
	return 2*c.Top + 1e-9
}

func (c *Curve) clip(b trimtab.Band) trimtab.Band {
	top := c.most()
	in := func(v float64) float64 { return math.Min(math.Max(v, 0), top) }
	return trimtab.Band{Lower: in(b.Lower), Mean: in(b.Mean), Upper: in(b.Upper)}
}

// ascend sets the bands at the bins: the mean and the bounds as they are seen
// from both sides, so that they do not fall.
func (c *Curve) ascend() {
	f := c.fit
	f.bands = make([]trimtab.Band, len(c.Bins))
	for i, b := range c.Bins {
		f.bands[i] = c.at(f, b.X)
	}
	mean := isotonic(c.Bins, f.bands)
	for i := range f.bands {
		f.bands[i].Mean = mean[i]
		f.bands[i].Lower = math.Min(f.bands[i].Lower, mean[i])
		f.bands[i].Upper = math.Max(f.bands[i].Upper, mean[i])
	}
	for i := len(f.bands) - 2; i >= 0; i-- {
		f.bands[i].Lower = math.Min(f.bands[i].Lower, f.bands[i+1].Lower)
	}
	for i := 1; i < len(f.bands); i++ {
		f.bands[i].Upper = math.Max(f.bands[i].Upper, f.bands[i-1].Upper)
	}
}

// isotonic returns the non-decreasing means of least squares (pool adjacent
// violators).
func isotonic(bins []bin, bands []trimtab.Band) []float64 {
	type block struct {
		mean, weight float64
		n            int
	}
	var blocks []block
	for i := range bands {
		blocks = append(blocks, block{bands[i].Mean, bins[i].Weight, 1})
		for k := len(blocks) - 1; k > 0 && blocks[k-1].mean > blocks[k].mean; k-- {
			a, b := blocks[k-1], blocks[k]
			w := a.weight + b.weight
			blocks[k-1] = block{(a.mean*a.weight + b.mean*b.weight) / w, w, a.n + b.n}
			blocks = blocks[:k]
		}
	}
	var out []float64
	for _, b := range blocks {
		for range b.n {
			out = append(out, b.mean)
		}
	}
	return out
}

// Predict returns the band at an allocation under a load; see learn.Learner.
func (c *Curve) Predict(allocation, load float64) trimtab.Band {
	n := len(c.Bins)
	if n == 0 {
		return trimtab.Band{Upper: 1, Mean: 0.5}
	}
	f := c.fitted()
	x := math.Inf(1)
	switch {
	case !(allocation > 0):
		x = math.Inf(-1)
	case load > 0:
		x = math.Log(allocation) - math.Log(load)
	}
	i, _ := slices.BinarySearchFunc(c.Bins, x, func(b bin, x float64) int {
		if b.X < x {
			return -1
		}
		return 1
	})
	switch {
	case i == 0 && c.Bins[0].X-x > together:
		b := f.bands[0]
		return trimtab.Band{Mean: b.Mean * math.Exp(x-c.Bins[0].X), Upper: b.Upper}
	case i == n && x-c.Bins[n-1].X > together:
		b := f.bands[n-1]
		return trimtab.Band{Lower: b.Lower, Mean: b.Mean, Upper: c.most()}
	case i == 0:
		return f.bands[0]
	case i == n:
		return f.bands[n-1]
	}
	// Between two bins: between their bands, and as wide as the regression says.
	a, b := f.bands[i-1], f.bands[i]
	t := (x - c.Bins[i-1].X) / (c.Bins[i].X - c.Bins[i-1].X)
	own := c.at(f, x)
	mean := a.Mean + t*(b.Mean-a.Mean)
	lower := math.Max(a.Lower, math.Min(a.Lower+t*(b.Lower-a.Lower), own.Lower))
	upper := math.Min(b.Upper, math.Max(a.Upper+t*(b.Upper-a.Upper), own.Upper))
	return trimtab.Band{Lower: math.Min(lower, mean), Mean: mean, Upper: math.Max(upper, mean)}
}

// Snapshot returns all bins, sealed.
func (c *Curve) Snapshot() ([]byte, error) { return num.Seal(c.Name(), c.curveState) }

// Restore restores a snapshot of a learner of the same level. It returns an error
// that is trimtab.ErrInvalid, and changes nothing, for any other bytes.
func (c *Curve) Restore(state []byte) error {
	var s curveState
	if err := num.Unseal(c.Name(), state, &s); err != nil {
		return fmt.Errorf("restore kernel: %w: %w", trimtab.ErrInvalid, err)
	}
	numbers := []float64{s.Top, s.Spread, s.Repeats}
	for i, b := range s.Bins {
		numbers = append(numbers, b.Y, b.Noise, b.Weight-leastWeight)
		if !(math.Abs(b.X) <= mostX) || i > 0 && !(s.Bins[i-1].X <= b.X) {
			return trimtab.Invalidf("restore kernel: bin %d at %v", i, b.X)
		}
	}
	for _, v := range numbers {
		if !(v >= 0 && v <= mostNumber*mostNumber) {
			return trimtab.Invalidf("restore kernel: number %v", v)
		}
	}
	if s.Level != c.Level || s.Seen < 0 || len(s.Bins) > curveBins {
		return trimtab.Invalidf("restore kernel: %d bins of %d reports at level %v", len(s.Bins), s.Seen, s.Level)
	}
	c.curveState, c.fit = s, nil
	return nil
}
