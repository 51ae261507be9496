package quantile

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestTheFastBucketIsTheBucketOfTheLogarithm(t *testing.T) {
	slow := func(v float64) int {
		return max(minBucket, min(maxBucket, int(math.Ceil(math.Log(v)*perLog))))
	}
	check := func(v float64) {
		if v > 0 && !math.IsInf(v, 0) && bucketOf(v) != slow(v) {
			t.Fatalf("bucket of %g is %d, want %d", v, bucketOf(v), slow(v))
		}
	}
	for i := minBucket - 5; i <= maxBucket+5; i++ {
		for border, k := math.Pow(gamma, float64(i)), -3; k <= 3; k++ {
			check(border * (1 + float64(k)*1e-16))
			check(border * (1 + float64(k)*1e-9))
			check(border * (1 + float64(k)*1e-3))
		}
	}
	for _, v := range []float64{math.SmallestNonzeroFloat64, math.MaxFloat64, 1e-9, 1, 2, math.Sqrt2} {
		check(v)
	}
	rapid.Check(t, func(t *rapid.T) { check(math.Exp(rapid.Float64Range(-25, 25).Draw(t, "ln v"))) })
}

func TestTheSumOfAHistogramIsTheSameInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 1e4), 1, 100).Draw(t, "values")
		var forward, backward Histogram
		for i, v := range values {
			forward.Add(v, 1.1)
			backward.Add(values[len(values)-1-i], 1.1)
		}
		if forward.sum != backward.sum {
			t.Fatalf("%v forward, %v backward", forward.sum, backward.sum)
		}
		exact := 0.0
		for _, v := range values {
			exact += v * 1.1
		}
		if math.Abs(forward.sum-exact) > 1e-9*float64(len(values))+1e-12*exact {
			t.Fatalf("sum %v, want %v", forward.sum, exact)
		}
	})
}

func BenchmarkHistogramAdd(b *testing.B) {
	var h Histogram
	v := 0.001
	for b.Loop() {
		if v *= 1.37; v > 10 {
			v *= 1e-4
		}
		h.Add(v, 1)
	}
}

func TestASettledHistogramIsTheOneThatWouldHaveTravelled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h, travelled Histogram
		for range rapid.IntRange(1, 200).Draw(t, "values") {
			h.Add(rapid.Float64Range(0, 10).Draw(t, "value"), 1/rapid.Float64Range(0.01, 1).Draw(t, "share"))
		}
		h.Settle()
		b, err := h.MarshalJSON()
		if err == nil {
			err = travelled.UnmarshalJSON(b)
		}
		if err != nil || h.Count() != travelled.Count() {
			t.Errorf("%v counted, %v after it travelled: %v", h.Count(), travelled.Count(), err)
		}
	})
}

func drawHistogram(t *rapid.T) (*Histogram, []float64) {
	values := rapid.SliceOfN(rapid.Float64Range(0, 1e4), 1, 300).Draw(t, "values")
	h := new(Histogram)
	for _, v := range values {
		h.Add(v, 1)
	}
	return h, values
}

func TestHistogramQuantilesAreWithinOnePercent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, values := drawHistogram(t)
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		got, ok := h.Quantile(q)
		if !ok {
			t.Fatal("no quantile")
		}
		// Slow and obvious: some value near got has rank about q.
		below, upTo := 0, 0
		for _, v := range values {
			if v < got*(1-.0101)-1e-9 {
				below++
			}
			if v <= got*(1+.0101)+1e-9 {
				upTo++
			}
		}
		if rank := q * float64(len(values)); float64(below) > rank+1e-6 || float64(upTo) < rank-1e-6 {
			t.Fatalf("quantile %v = %v: %d below, %d up to, of %d", q, got, below, upTo, len(values))
		}
	})
}

func TestMergedHistogramsEqualTheHistogramOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, values := drawHistogram(t)
		parts := []*Histogram{new(Histogram), new(Histogram), new(Histogram)}
		for _, v := range values {
			parts[rapid.IntRange(0, 2).Draw(t, "part")].Add(v, 1)
		}
		merged := new(Histogram)
		for _, i := range rapid.Permutation([]int{0, 1, 2}).Draw(t, "order") {
			merged.Merge(parts[i])
		}
		for q := 0.0; q <= 1; q += 0.1 {
			a, _ := all.Quantile(q)
			b, _ := merged.Quantile(q)
			if a != b || all.Count() != merged.Count() {
				t.Fatalf("at %v: %v, merged %v", q, a, b)
			}
		}
	})
}

func TestHistogramFractionBelowIsMonotoneAndExactAtTheEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, _ := drawHistogram(t)
		before := 0.0
		for _, v := range []float64{0, 1e-9, 1e-3, 1, 2, 10, 500, 1e4, 1e5} {
			f, ok := h.FractionBelow(v)
			if !ok || f < before || f > 1 {
				t.Fatalf("at %v: %v after %v", v, f, before)
			}
			before = f
		}
		if math.Abs(before-1) > 1e-12 {
			t.Fatalf("below everything: %v", before)
		}
	})
}

func TestAHistogramCountsNoNonsense(t *testing.T) {
	var h Histogram
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
		h.Add(v, 1)
		h.Add(1, v)
	}
	h.Add(1, 0)
	if h.Count() != 0 {
		t.Errorf("counted %v", h.Count())
	}
}
