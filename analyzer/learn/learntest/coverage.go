package learntest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/trimtab/trimtab/analyzer/learn"
)

// Plan says what Coverage runs.
type Plan struct {
	// Seeds is the number of independent runs per curve.
	Seeds int
	// Counts are the numbers of reports to look after; default 60, 600, 2160.
	Counts []int
	// Scale multiplies the requests of each report; default 1: ten per unit
	// of load, a load about 20.
	Scale float64
	// From is the first seed.
	From uint64
}

// Row is the result for one curve at one count.
type Row struct {
	Curve string
	Count int
	// Share of the visited range inside the band, its mean over the seeds;
	// Worst is the worst seed's. Whole is the share of [Low, High].
	Share, Worst, Whole float64
	// Width is the mean width of the band over the visited range, relative to
	// the highest performance.
	Width float64
	// Hits of Trials independent points, one a seed, were inside.
	Hits, Trials int
}

// Likely returns the probability of at most r.Hits hits were the level exact:
// a small one convicts the bounds.
func (r Row) Likely(level float64) float64 {
	sum := 0.0
	for k := 0; k <= r.Hits; k++ {
		sum += math.Exp(logChoose(r.Trials, k) + float64(k)*math.Log(level) + float64(r.Trials-k)*math.Log1p(-level))
	}
	return math.Min(1, sum)
}

func logChoose(n, k int) float64 {
	g := func(v int) float64 { x, _ := math.Lgamma(float64(v) + 1); return x }
	return g(n) - g(k) - g(n-k)
}

// Table prints rows for a person.
func Table(rows []Row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-18s %6s %7s %7s %7s %7s %9s\n", "curve", "count", "share", "worst", "whole", "width", "points")
	for _, r := range rows {
		fmt.Fprintf(&b, "%-18s %6d %7.3f %7.3f %7.3f %7.3f %5d/%d\n", r.Curve, r.Count, r.Share, r.Worst, r.Whole, r.Width, r.Hits, r.Trials)
	}
	return b.String()
}

// Coverage teaches fresh learners the curves and compares their bands with
// the truth after each count.
func Coverage(make func() learn.Learner, curves []Curve, p Plan) []Row {
	if p.Counts == nil {
		p.Counts = []int{60, 600, 2160}
	}
	var rows []Row
	for _, c := range curves {
		at := len(rows)
		for _, n := range p.Counts {
			rows = append(rows, Row{Curve: c.Name, Count: n, Worst: 1, Trials: p.Seeds})
		}
		for s := range p.Seeds {
			follow(make(), c, p, p.From+uint64(s), rows[at:])
		}
	}
	return rows
}

// follow runs one learner and adds to the rows.
func follow(l learn.Learner, c Curve, p Plan, seed uint64, rows []Row) {
	env := NewEnvironment(c, seed)
	if p.Scale > 0 {
		env.Scale = p.Scale
	}
	low, high := math.Inf(1), 0.0
	n := 0
	for i := range rows {
		r := &rows[i]
		for ; n < r.Count; n++ {
			o := env.Next()
			low, high = math.Min(low, o.Allocation/o.Load), math.Max(high, o.Allocation/o.Load)
			if err := l.Observe(o); err != nil {
				panic(err)
			}
		}
		share, width := inside(l, c, env.Load(), low, high)
		whole, _ := inside(l, c, env.Load(), c.Low, c.High)
		seeds := float64(p.Seeds)
		r.Share += share / seeds
		r.Whole += whole / seeds
		r.Width += width / seeds
		r.Worst = math.Min(r.Worst, share)
		x := low + env.Rand.Float64()*(high-low)
		b := l.Predict(x*env.Load(), env.Load())
		if b.Lower <= c.At(x)+tiny && c.At(x) <= b.Upper+tiny {
			r.Hits++
		}
	}
}

// tiny forgives rounding.
const tiny = 1e-9

// inside returns the share of 200 points from low to high where the truth is
// in the band, and the mean width.
func inside(l learn.Learner, c Curve, load, low, high float64) (share, width float64) {
	const points = 200
	for i := range points {
		x := low + (high-low)*(float64(i)+0.5)/points
		b, truth := l.Predict(x*load, load), c.At(x)
		if b.Lower <= truth+tiny && truth <= b.Upper+tiny {
			share += 1.0 / points
		}
		width += (b.Upper - b.Lower) / points / c.At(c.High)
	}
	return share, width
}

// Environment makes reports of a service with a known curve: the load swings
// as over a day with noise, the allocation is moved every 12 reports.
type Environment struct {
	Curve Curve
	Rand  *rand.Rand
	Scale float64
	// Factor multiplies the performance: less than 1 after a change.
	Factor float64

	n          int
	phase      float64
	allocation float64
	load       float64
}

// NewEnvironment returns one, seeded.
func NewEnvironment(c Curve, seed uint64) *Environment {
	e := &Environment{Curve: c, Rand: rand.New(rand.NewPCG(seed, 77)), Scale: 1, Factor: 1}
	e.phase = e.Rand.Float64() * 2 * math.Pi
	e.move()
	e.allocation = e.load * (c.Low + (0.2+0.6*e.Rand.Float64())*(c.High-c.Low))
	return e
}

// Load returns the load of the latest report.
func (e *Environment) Load() float64 { return e.load }

func (e *Environment) move() {
	if e.Curve.Rate {
		e.load = 1
		return
	}
	day := 20 * (1 + 0.35*math.Sin(e.phase+2*math.Pi*float64(e.n)/720))
	e.load = math.Max(1, day*(1+0.08*e.Rand.NormFloat64()))
}

// Next returns the next report.
func (e *Environment) Next() learn.Observation {
	c := e.Curve
	if e.n%12 == 0 {
		step := (c.High - c.Low) * 0.12 * e.load
		e.allocation += step * (2*e.Rand.Float64() - 1)
		e.allocation = math.Max(c.Low*e.load, math.Min(c.High*e.load, e.allocation))
	}
	e.move()
	e.n++
	p := e.Factor * c.At(e.allocation/e.load)
	o := learn.Observation{Time: time.Unix(int64(10*e.n), 0), Allocation: e.allocation, Load: e.load}
	if c.Rate {
		o.Performance = math.Max(0, p*(1+0.03*e.Rand.NormFloat64()))
		return o
	}
	o.Requests = math.Max(1, math.Round(10*e.load*e.Scale))
	o.Performance = Binomial(e.Rand, int(o.Requests), p) / o.Requests
	return o
}

// Binomial draws how many of n requests are in time, each with probability p.
func Binomial(r *rand.Rand, n int, p float64) float64 {
	k := 0.0
	for range n {
		if r.Float64() < p {
			k++
		}
	}
	return k
}
