package walk_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/walk"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func drawReport(t *rapid.T) walk.Report {
	draw := func(low, high float64, name string) float64 { return rapid.Float64Range(low, high).Draw(t, name) }
	return walk.Report{X: draw(-5, 5, "x"), L: draw(-3, 3, "l"), P: draw(0, 1, "p"), W: draw(0.1, 10, "w")}
}

func TestMergedMomentsAreThoseOfAllReports(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []walk.Report
		var parts [2]walk.Moments
		for range rapid.IntRange(1, 20).Draw(t, "n") {
			r := drawReport(t)
			one := walk.One(r)
			parts[rapid.IntRange(0, 1).Draw(t, "part")].Merge(&one)
			all = append(all, r)
		}
		got := parts[0]
		got.Merge(&parts[1])
		var want walk.Moments
		for _, r := range all {
			want.N, want.W = want.N+1, want.W+r.W
			want.X, want.L, want.P = want.X+r.W*r.X, want.L+r.W*r.L, want.P+r.W*r.P
		}
		want.X, want.L, want.P = want.X/want.W, want.L/want.W, want.P/want.W
		for _, r := range all {
			x, l, p := r.X-want.X, r.L-want.L, r.P-want.P
			want.XX, want.LL, want.PP = want.XX+r.W*x*x, want.LL+r.W*l*l, want.PP+r.W*p*p
			want.XL, want.XP, want.LP = want.XL+r.W*x*l, want.XP+r.W*x*p, want.LP+r.W*l*p
		}
		for i, pair := range [][2]float64{{got.N, want.N}, {got.W, want.W}, {got.X, want.X}, {got.L, want.L}, {got.P, want.P}, {got.XX, want.XX},
			{got.LL, want.LL}, {got.PP, want.PP}, {got.XL, want.XL}, {got.XP, want.XP}, {got.LP, want.LP}} {
			if !near(pair[0], pair[1]) {
				t.Fatalf("number %d: %+v, want %+v", i, got, want)
			}
		}
		if err := got.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}

// posterior solves (prior precision + observations) m = y/r by elimination,
// and returns m and the diagonal of the inverse.
func posterior(y, r, way []float64) (mean, variance []float64) {
	n := len(y)
	a := make([][]float64, n) // [precision | y/r | identity]
	for i := range a {
		a[i] = make([]float64, 2*n+1)
		a[i][n+1+i] = 1
		if !math.IsInf(r[i], 1) {
			a[i][i], a[i][n] = 1/r[i], y[i]/r[i]
		}
	}
	for i := 1; i < n; i++ {
		q := 1 / way[i]
		a[i][i], a[i-1][i-1] = a[i][i]+q, a[i-1][i-1]+q
		a[i][i-1], a[i-1][i] = a[i][i-1]-q, a[i-1][i]-q
	}
	for i := range a {
		for j := range a {
			if f := a[j][i] / a[i][i]; i != j {
				for k := range a[j] {
					a[j][k] -= f * a[i][k]
				}
			}
		}
	}
	for i := range a {
		mean, variance = append(mean, a[i][n]/a[i][i]), append(variance, a[i][n+1+i]/a[i][i])
	}
	return mean, variance
}

func TestSmoothIsThePosteriorOfTheWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		var y, r, way []float64
		var p walk.Path
		p.Make(n)
		for i := range n {
			y = append(y, rapid.Float64Range(0, 1).Draw(t, "y"))
			r = append(r, rapid.Float64Range(0.01, 1).Draw(t, "r"))
			way = append(way, rapid.Float64Range(0.01, 1).Draw(t, "way"))
			if i > 0 && rapid.Bool().Draw(t, "gap") {
				y[i], r[i] = 0, math.Inf(1)
			}
			p.Set(i, y[i], r[i], way[i])
		}
		p.Smooth(0)
		mean, variance := posterior(y, r, way)
		for i := range mean {
			if !near(p.Mean[i], mean[i]) || !near(p.Variance[i], variance[i]) {
				t.Fatalf("place %d: %v ± %v, want %v ± %v", i, p.Mean[i], p.Variance[i], mean[i], variance[i])
			}
		}
	})
}

func TestAGapThatRisesWandersMoreThanAFlatOne(t *testing.T) {
	leaf := make([]walk.Leaf, 20)
	for i := range leaf {
		leaf[i] = walk.Leaf{X: float64(i), Y: 0.2, R: 1e-4}
		if i >= 10 {
			leaf[i].Y = 0.9
		}
	}
	gap := make([]walk.Gap, 19)
	walk.Steepness{Telling: 6.25, Around: 0.75}.Estimate(gap, leaf, 1)
	for i, g := range gap {
		if g.Octaves != 1 || i != 9 && g.Wander > gap[9].Wander/2 {
			t.Errorf("gap %d: %+v, the step's %+v", i, g, gap[9])
		}
	}
}

func TestARiseThatNoiseExplainsIsNoStepByItself(t *testing.T) {
	at := func(rise float64) (alone, others float64) {
		leaf := make([]walk.Leaf, 20)
		for i := range leaf {
			leaf[i] = walk.Leaf{X: float64(i), Y: 0.5, R: 5e-3} // the difference of two has a deviation of 0.1
		}
		for i := 10; i < len(leaf); i++ {
			leaf[i].Y += rise
		}
		gap := make([]walk.Gap, 19)
		walk.Steepness{Telling: 6.25, Around: 0.75}.Estimate(gap, leaf, 1)
		return gap[9].Wander, gap[8].Wander
	}
	if alone, others := at(0.24); alone > others {
		t.Errorf("2.4 standard errors: %v, beside it %v", alone, others)
	}
	if alone, others := at(0.4); alone < 1.5*others {
		t.Errorf("4 standard errors: %v, beside it %v", alone, others)
	}
}

// The rise from bin to bin is a third of its noise; over all of them, it is
// seven times that.
func TestASlopeIsSeenThroughNoiseInWhichEveryStepOfItDrowns(t *testing.T) {
	const slope, noise, runs = 0.5, 0.075, 400
	flat := 0
	for run := range runs {
		r := rand.New(rand.NewPCG(uint64(run), 1))
		leaf := make([]walk.Leaf, 24)
		for i := range leaf {
			x := float64(i) * 0.07
			leaf[i] = walk.Leaf{X: x, Y: slope*x + noise*r.NormFloat64(), R: noise * noise}
		}
		gap := make([]walk.Gap, len(leaf)-1)
		walk.Steepness{Telling: 6.25, Around: 0.75}.Estimate(gap, leaf, 1)
		if gap[12].Wander < slope*slope/10 {
			flat++
		}
	}
	if flat > runs/50 {
		t.Errorf("a slope of %v an octave counts as less than a third of that in %d of %d runs", slope, flat, runs)
	}
}

func TestBinsThatLieTogetherDoNotMakeEachOtherSteep(t *testing.T) {
	const noise, runs = 0.05, 200
	for run := range runs {
		r := rand.New(rand.NewPCG(uint64(run), 2))
		leaf := make([]walk.Leaf, 6)
		for i := range leaf {
			leaf[i] = walk.Leaf{X: 1e-3 * float64(i), Y: 0.5 + noise*r.NormFloat64(), R: noise * noise}
		}
		gap := make([]walk.Gap, len(leaf)-1)
		walk.Steepness{Telling: 25, Around: 0.75}.Estimate(gap, leaf, 1)
		for i, g := range gap {
			if way := g.Wander * g.Octaves; way > noise*noise/4 {
				t.Fatalf("run %d, gap %d: a walk of variance %.2g on 1e-3 octaves, noise %.2g", run, i, way, noise*noise)
			}
		}
	}
}

func TestAReportThatSaysLessIsToldApart(t *testing.T) {
	full := learn.Observation{Allocation: 4, Load: 2, Performance: 0.5, Requests: 10, Sigma: 0.5}
	bare := learn.Observation{Allocation: 4, Load: 2, Performance: 0.5}
	for _, c := range []struct {
		mode   walk.Mode
		o      learn.Observation
		weight float64
		ok     bool
	}{{walk.Fraction, full, 10, true}, {walk.Declared, full, 4, true}, {walk.Plain, full, 1, true},
		{walk.Fraction, bare, 1, false}, {walk.Declared, bare, 1, false}, {walk.Plain, bare, 1, true}} {
		if r, ok := c.mode.Report(c.o); ok != c.ok || r.W != c.weight || r.X != 1 || r.P != 0.5 {
			t.Errorf("%s: %+v %v, want weight %v %v", c.mode, r, ok, c.weight, c.ok)
		}
	}
}

func TestNoiseThatGoesOnRaisesTheFactor(t *testing.T) {
	var steady, alternating, persistent walk.Serial
	for i := range 1000 {
		alternating.See(float64(2*(i%2) - 1))
		persistent.See(float64(2*(i/50%2) - 1))
	}
	if steady.Factor() != 1 || alternating.Factor() != 1 || persistent.Factor() < 5 {
		t.Errorf("nothing seen %v, alternating %v, persistent %v", steady.Factor(), alternating.Factor(), persistent.Factor())
	}
}
