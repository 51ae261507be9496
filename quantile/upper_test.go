package quantile

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A heavy tail, a narrow one and one with two peaks: the bound must not know which.
func TestTheUpperBoundCoversTheQuantileAsOftenAsItSaysWhateverTheDistribution(t *testing.T) {
	const q, confidence, trials = 0.95, 0.95, 4000
	r := rand.New(rand.NewPCG(1, 2))
	for name, of := range map[string]struct {
		draw func() float64
		true float64
	}{
		"uniform": {func() float64 { return 1 + r.Float64() }, 1.95},
		"Pareto":  {func() float64 { return math.Pow(1-r.Float64(), -1) }, 20},
		"peaks": {func() float64 {
			if u := r.Float64(); u < 0.93 {
				return 0.01 * (1 + u)
			}
			return 2 + r.Float64()
		}, 2 + 2./7},
	} {
		for _, n := range []int{59, 200, 2000} {
			covered := 0
			for range trials {
				var h Histogram
				for range n {
					h.Add(of.draw(), 1)
				}
				if bound, ok := h.Upper(q, confidence, float64(n)); ok && bound >= of.true {
					covered++
				}
			}
			if share := float64(covered) / trials; share < confidence-0.012 { // 3 standard deviations
				t.Errorf("%s, %d values: covered in %.2f%%", name, n, 100*share)
			}
		}
	}
}

func TestTheUpperBoundOfTheLargestSampleIsTheLargestAndFewerHaveNone(t *testing.T) {
	var h Histogram
	for i := range 58 {
		h.Add(float64(i+1), 1)
	}
	if Needed(0.95, 0.95) != 59 || Needed(0.9, 0.9) != 22 || Needed(0.5, 0.5) != 1 {
		t.Error(Needed(0.95, 0.95), Needed(0.9, 0.9), Needed(0.5, 0.5))
	}
	if _, ok := h.Upper(0.95, 0.95, h.Count()); ok {
		t.Error("58 values bound the 0.95 quantile")
	}
	h.Add(59, 1)
	if v, ok := h.Upper(0.95, 0.95, h.Count()); !ok || v < 59 || v > 59*gamma {
		t.Errorf("%v, %v: want 59", v, ok)
	}
	for _, n := range []float64{math.NaN(), math.Inf(-1), -1, 0} {
		if _, ok := h.Upper(0.95, 0.95, n); ok {
			t.Errorf("%v values have a bound", n)
		}
	}
}

func TestTheUpperBoundOfManyValuesIsNearTheQuantileAndNeverBelow(t *testing.T) {
	var h Histogram
	for i := range 10_000 {
		h.Add(1+float64(i)/10_000, 1)
	}
	for _, n := range []float64{1e4, 1e6, 1e9, math.Inf(1)} { // each value stands for n/10,000
		v, ok := h.Upper(0.95, 0.95, n)
		if q, _ := h.Quantile(0.95); !ok || v < q || v > q*gamma*gamma {
			t.Errorf("%v values: %v, %v, want just over %v", n, v, ok, q)
		}
	}
}

func TestTheUpperTailOfTheBinomialIsThatOfTheSum(t *testing.T) {
	for _, n := range []float64{1, 7, 60, 500} {
		for _, q := range []float64{0.5, 0.9, 0.95} {
			term, below := math.Pow(1-q, n), 0.0
			if term == 0 {
				continue // the slow sum cannot begin
			}
			for k := 0.0; k <= n; k++ {
				if k >= n*q {
					if got, want := atLeast(k, n, q), 1-below; math.Abs(got-want) > 1e-6 {
						t.Errorf("P(Bin(%v, %v) >= %v) = %v, want %v", n, q, k, got, want)
					}
				}
				below += term
				term *= (n - k) / (k + 1) * q / (1 - q)
			}
		}
	}
}

func BenchmarkUpper(b *testing.B) {
	var h Histogram
	for i := range 10_000 {
		h.Add(1+float64(i)/10_000, 1)
	}
	for b.Loop() {
		h.Upper(0.95, 0.95, 1e6)
	}
}
