package queue

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

func TestNothingIsInTimeWhereMoreWorkArrivesThanIsDone(t *testing.T) {
	for _, a := range []float64{0, 0.05, 0.1} {
		if p := InTime(a, 10, 0.01, 0.2); p != 0 {
			t.Errorf("with %v cores for 0.1 cores of work: %v in time", a, p)
		}
	}
}

func TestARequestThatTakesLongerThanTheLatencyAloneIsNeverInTime(t *testing.T) {
	if p := InTime(0.03, 0.1, 0.01, 0.2); p != 0 {
		t.Errorf("%v in time", p)
	}
}

func TestMoreIsNeverWorseAndMoreLoadOrCostNeverBetter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, load := rapid.Float64Range(0.01, 4).Draw(t, "a"), rapid.Float64Range(0.1, 500).Draw(t, "load")
		cost, latency := rapid.Float64Range(1e-4, 0.1).Draw(t, "cost"), rapid.SampledFrom([]float64{0, 0.05, 0.3, 2}).Draw(t, "latency")
		f := rapid.Float64Range(1, 2).Draw(t, "factor")
		p := InTime(a, load, cost, latency)
		if !(p >= 0 && p <= 1) {
			t.Fatalf("%v in time", p)
		}
		if q := InTime(a*f, load, cost, latency); q < p-1e-9 {
			t.Fatalf("%v, and %v with %v times as much", p, q, f)
		}
		if q := InTime(a, load*f, cost, latency); q > p+1e-9 {
			t.Fatalf("%v, and %v under %v times the load", p, q, f)
		}
		if q := InTime(a, load, cost*f, latency); q > p+1e-9 {
			t.Fatalf("%v, and %v at %v times the cost", p, q, f)
		}
	})
}

// report draws how many of n requests are in time.
func report(rng *rand.Rand, p float64, n int) float64 {
	in := 0.0
	for range n {
		if rng.Float64() < p {
			in++
		}
	}
	return in / float64(n)
}

func TestAServiceThatIsDearerThanItsCostIsLearnt(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	m := New(0.25)
	const truth = 1.6
	for i := range 400 {
		a := 0.2 + 0.2*float64(i%5)/4
		if err := m.Observe(a, 10, 0.01, report(rng, InTime(a, 10, 0.01*truth, 0.25), 10), 10); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range []float64{0.2, 0.25, 0.3, 0.4} {
		want, b := InTime(a, 10, 0.01*truth, 0.25), m.Predict(a, 10, 0.01, 0.9)
		if math.Abs(b.Mean-want) > 0.08 || want < b.Lower || want > b.Upper {
			t.Errorf("at %v: %v, true %v", a, b, want)
		}
	}
}

// The truth is drawn from what is believed beforehand; the band of level 0.9
// must hold it in no fewer cases, before reports and after.
func TestTheBandHoldsItsLevel(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const cases = 600
	for _, reports := range []int{0, 3, 30} {
		held, points := 0, 0
		for range cases {
			h := math.Exp(spread * rng.NormFloat64())
			m := New(0.2)
			for range reports {
				a := 0.15 + 0.25*rng.Float64()
				if err := m.Observe(a, 9, 0.012, report(rng, InTime(a, 9, 0.012*h, 0.2), 9), 9); err != nil {
					t.Fatal(err)
				}
			}
			a := 0.12 + 0.3*rng.Float64()
			b, p := m.Predict(a, 9, 0.012, 0.9), InTime(a, 9, 0.012*h, 0.2)
			if points++; p >= b.Lower-1e-9 && p <= b.Upper+1e-9 {
				held++
			}
		}
		if share := float64(held) / float64(points); share < 0.87 {
			t.Errorf("after %d reports the band of level 0.9 held %.3f of %d", reports, share, points)
		}
	}
}

func TestNumbersOutOfRangeAreRefusedAndTeachNothing(t *testing.T) {
	m := New(0.2)
	before := *m
	for _, v := range [][5]float64{{0, 1, 1, 1, 1}, {1, -1, 1, 1, 1}, {1, 1, math.NaN(), 1, 1}, {1, 1, 1, 1.1, 1}, {1, 1, 1, math.NaN(), 1}, {1, 1, 1, 1, math.Inf(1)}} {
		if err := m.Observe(v[0], v[1], v[2], v[3], v[4]); err == nil {
			t.Errorf("%v was taken", v)
		}
	}
	if *m != before {
		t.Error("a refused report taught something")
	}
}

func TestAnInformedCurveIsAlwaysValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := New(rapid.SampledFrom([]float64{0, 0.1, 1}).Draw(t, "latency"))
		var c *trimtab.Curve
		if rapid.Bool().Draw(t, "learnt") {
			c = &trimtab.Curve{Load: 5, Level: 0.9}
			a, top := 0.0, 0.0
			for range rapid.IntRange(1, trimtab.MaxKnots).Draw(t, "knots") {
				a += rapid.Float64Range(0.001, 0.2).Draw(t, "step")
				top = math.Min(1, top+rapid.Float64Range(0, 0.1).Draw(t, "rise"))
				c.Knots = append(c.Knots, trimtab.Knot{Allocation: a, Band: trimtab.Band{Lower: top / 2, Mean: top, Upper: (1 + top) / 2}})
			}
		}
		load, cost := rapid.Float64Range(1e-3, 1e4).Draw(t, "load"), rapid.Float64Range(1e-6, 1).Draw(t, "cost")
		least := rapid.SampledFrom([]float64{0, 0.01}).Draw(t, "least")
		out := m.Inform(c, load, cost, 0.9, least, rapid.Float64Range(0.02, 64).Draw(t, "most"))
		if err := out.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWhereNothingWasTriedTheCostTells(t *testing.T) {
	m := New(0.25)
	flat := &trimtab.Curve{Load: 10, Level: 0.9, Knots: []trimtab.Knot{
		{Allocation: 0.01, Band: trimtab.Band{Lower: 0, Mean: 0.5, Upper: 1}}, {Allocation: 1, Band: trimtab.Band{Lower: 0, Mean: 0.5, Upper: 1}}}}
	c := m.Inform(flat, 10, 0.01, 0.9, 0.01, 1)
	if low, high := c.Eval(0.07).Mean, c.Eval(0.4).Mean; low > 0.15 || high < 0.9 {
		t.Errorf("0.07 cores for 0.1 cores of work: %v; 0.4: %v", low, high)
	}
}

func TestWhatWasSeenCountsMoreThanTheCost(t *testing.T) {
	m := New(0.25)
	seen := &trimtab.Curve{Load: 10, Level: 0.9, Knots: []trimtab.Knot{
		{Allocation: 0.3, Band: trimtab.Band{Lower: 0.58, Mean: 0.6, Upper: 0.62}}, {Allocation: 0.5, Band: trimtab.Band{Lower: 0.6, Mean: 0.62, Upper: 0.64}}}}
	if p := m.Inform(seen, 10, 0.01, 0.9, 0.01, 1).Eval(0.3).Mean; p > 0.76 {
		t.Errorf("60%% were seen in time, %v is believed", p)
	}
}

func TestHoweverGoodAServiceWasSeenToBeItDoesNoMoreWorkThanItsCPU(t *testing.T) {
	m := New(0.2)
	for range 200 { // at 93% utilisation nearly all are in time
		if err := m.Observe(0.301, 28, 0.01, 0.96, 28); err != nil {
			t.Fatal(err)
		}
	}
	if b := m.Predict(0.301, 28, 0.01, 0.9); b.Mean < 0.85 {
		t.Errorf("it learnt nothing: %+v where 0.96 was seen", b)
	}
	for _, a := range []float64{0.2, 0.25} {
		if b := m.Predict(a, 28, 0.01, 0.9); b.Mean > 0.01 {
			t.Errorf("with %v cores for 0.28 cores of work %v are expected in time", a, b.Mean)
		}
	}
}
