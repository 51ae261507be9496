package fingerprint

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trimtab/trimtab"
	"pgregory.net/rapid"
)

// slowQuartiles sorts, and follows the definitions in words.
func slowQuartiles(v []float64, q Quartile) (float64, float64) {
	s := slices.Clone(v)
	slices.Sort(s)
	n := len(s)
	between := func(h float64) float64 {
		h = max(0, min(h, float64(n-1)))
		i := int(math.Floor(h))
		if i+1 == n {
			return s[i]
		}
		return s[i] + (h-float64(i))*(s[i+1]-s[i])
	}
	middle := func(s []float64) float64 {
		if len(s)%2 == 1 {
			return s[len(s)/2]
		}
		a, b := s[len(s)/2-1], s[len(s)/2]
		return a + (b-a)/2
	}
	switch q {
	case Exclusive:
		return between(float64(n+1)*0.25 - 1), between(float64(n+1)*0.75 - 1)
	case Tukey:
		half := n/2 + n%2
		return middle(s[:half]), middle(s[n-half:])
	}
	return between(float64(n-1) * 0.25), between(float64(n-1) * 0.75)
}

// slowMean is algorithm 2 and the mean of what is left.
func slowMean(v []float64, p float64, q Quartile) float64 {
	q1, q3 := slowQuartiles(v, q)
	var left []float64
	for _, x := range v {
		if x >= q1-p*(q3-q1) && x <= q3+p*(q3-q1) {
			left = append(left, x)
		}
	}
	if len(left) == 0 {
		left = v
	}
	sum := 0.0
	for _, x := range left {
		sum += x
	}
	return sum / float64(len(left))
}

// slowLevel is algorithm 1, line by line.
func slowLevel(d []float64, k int, p float64, q Quartile) (float64, Branch) {
	sorted := func(v []float64) bool {
		down := slices.Clone(v)
		slices.Reverse(down)
		return slices.IsSorted(v) || slices.IsSorted(down)
	}
	if sorted(d) {
		return d[len(d)-1], Monotone
	}
	if len(d) < k {
		return slowMean(d, p, q), Short
	}
	segments, i := make([][]float64, k), 0
	for _, x := range d {
		segments[i] = append(segments[i], x)
		if len(segments[i]) >= (len(d)+k-1)/k {
			i++
		}
	}
	var means []float64
	for _, s := range segments {
		if len(s) > 0 {
			means = append(means, slowMean(s, p, q))
		}
	}
	if sorted(means) {
		return means[len(means)-1], SegmentsMonotone
	}
	return slowMean(means, p, q), SegmentsMean
}

// drawData is a window as metrics have it: any numbers, few different ones, with
// outliers, or all in a narrow band far from zero.
func drawData(t *rapid.T) []float64 {
	one := rapid.OneOf(
		rapid.Float64Range(-1, 1), rapid.Float64Range(0.999999, 1), rapid.SampledFrom([]float64{0, 0.25, 0.5, 1}),
		rapid.Float64Range(-1e100, 1e100), rapid.Float64Range(0, 5e-324*1000),
	)
	if rapid.Bool().Draw(t, "one kind") {
		one = rapid.SampledFrom([]*rapid.Generator[float64]{rapid.Float64Range(0, 1), rapid.Float64Range(1e6, 1e6+1)}).Draw(t, "kind")
	}
	n := rapid.IntRange(1, 400).Draw(t, "n")
	return rapid.SliceOfN(one, n, n).Draw(t, "data")
}

func TestTheLevelIsThatOfTheAlgorithmLineByLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawData(t)
		a := Approximation{
			K: rapid.IntRange(1, 12).Draw(t, "k"), P: rapid.SampledFrom([]float64{0, 0.3, 1.5, 3}).Draw(t, "p"),
			Quartile: rapid.SampledFrom([]Quartile{"", Linear, Exclusive, Tukey}).Draw(t, "quartile"),
		}
		before := slices.Clone(d)
		got, err := a.Of(d)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(before, d) {
			t.Fatal("the data changed")
		}
		want, branch := slowLevel(d, a.K, a.P, a.Quartile)
		if got.Branch != branch || math.Abs(got.Value-want) > 1e-9*math.Max(math.Abs(want), math.SmallestNonzeroFloat64*1e12) {
			t.Fatalf("%v by %s, want %v by %s", got.Value, got.Branch, want, branch)
		}
	})
}

func TestQuartilesAreThoseOfTheSortedValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawData(t)
		q := rapid.SampledFrom([]Quartile{Linear, Exclusive, Tukey}).Draw(t, "quartile")
		var s selector
		lower, upper := s.quartiles(v, q)
		wantLower, wantUpper := slowQuartiles(v, q)
		span := slices.Max(v) - slices.Min(v)
		if math.Abs(lower-wantLower) > 1e-12*span || math.Abs(upper-wantUpper) > 1e-12*span {
			t.Fatalf("%v, %v, want %v, %v", lower, upper, wantLower, wantUpper)
		}
	})
}

func TestTheLevelLiesWithinTheData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawData(t)
		a := Default()
		got, err := a.Of(d)
		slack := 1e-12 * max(math.Abs(slices.Max(d)), math.Abs(slices.Min(d)))
		if err != nil || got.Value < slices.Min(d)-slack || got.Value > slices.Max(d)+slack {
			t.Fatalf("%v, %v", got, err)
		}
	})
}

func TestOneOutlierDoesNotMoveTheLevel(t *testing.T) {
	d := []float64{3, 5, 4, 3, 5, 4, 3, 5, 4, 5, 3, 4, 5, 3, 4, 3, 5, 4, 3, 4}
	a := Default()
	calm, _ := a.Of(d)
	d[6] = 1e9
	if got, err := a.Of(d); err != nil || math.Abs(got.Value-calm.Value) > 0.5 {
		t.Errorf("%v, %v; %v without the outlier", got.Value, err, calm.Value)
	}
}

func TestDataThatHaveNoLevelAreRefused(t *testing.T) {
	a := Default()
	for _, d := range [][]float64{nil, {}, {1, math.NaN()}, {math.Inf(1)}, {1, -math.Inf(1), 2}, {1e101}} {
		if _, err := a.Of(d); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%v: %v", d, err)
		}
	}
	for _, a := range []Approximation{{K: 0, P: 1.5}, {K: -1, P: 1.5}, {K: 5, P: -1}, {K: 5, P: math.NaN()}, {K: 5, P: math.Inf(1)}, {K: 5, P: 1.5, Quartile: "mean"}} {
		if _, err := a.Of([]float64{1, 2}); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v", a, err)
		}
	}
}

func TestALevelAllocatesNothingOnceWarm(t *testing.T) {
	d, a := noise(4000), Default()
	if n := testing.AllocsPerRun(20, func() { _, _ = a.Of(d) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// noise is a load with spikes.
func noise(n int) []float64 {
	r := rand.New(rand.NewPCG(1, 2))
	d := make([]float64, n)
	for i := range d {
		if d[i] = 0.4 + 0.1*r.NormFloat64(); r.IntN(100) == 0 {
			d[i] *= 5
		}
	}
	return d
}

// BenchmarkLevel is the load level of windows of several lengths: the time grows
// as they do.
func BenchmarkLevel(b *testing.B) {
	for _, n := range []int{1000, 4000, 16000} {
		b.Run(fmt.Sprintf("samples=%d", n), func(b *testing.B) {
			d, a := noise(n), Default()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Of(d); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/sample")
		})
	}
}
