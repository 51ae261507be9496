package gp_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
	"github.com/trimtab/trimtab/analyzer/learn/learntest"
)

const level = 0.9

func fresh() learn.Learner { return process() }

func process() *gp.Process {
	l, err := gp.New(level)
	if err != nil {
		panic(err)
	}
	return l
}

func TestGPIsALearner(t *testing.T) { learntest.Run(t, fresh) }

func TestALevelOutsideZeroToOneIsRefused(t *testing.T) {
	for _, v := range []float64{0, 1, -1, math.NaN(), math.Inf(1)} {
		if l, err := gp.New(v); err == nil {
			t.Errorf("level %v: %v", v, l)
		}
	}
}

// observe teaches n reports of 200 requests of an exact performance.
func observe(t *testing.T, l learn.Learner, n int, a, load, p float64) {
	t.Helper()
	for i := range n {
		o := learn.Observation{Time: time.Unix(int64(i), 0), Allocation: a, Load: load, Performance: p, Requests: 200}
		if err := l.Observe(o); err != nil {
			t.Fatal(err)
		}
	}
}

// uniform teaches n reports at uniform a/l in [0.1, 2] under a load of 20.
func uniform(t *testing.T, l learn.Learner, n int, seed uint64, at func(x float64) float64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	for range n {
		x := 0.1 + 1.9*r.Float64()
		hits := 0.0
		for range 200 {
			if r.Float64() < at(x) {
				hits++
			}
		}
		observe(t, l, 1, 20*x, 20, hits/200)
	}
}

func saturating(x float64) float64 { return 1 - math.Exp(-3*x) }

// peaked has its best performance at 0.7.
func peaked(x float64) float64 { return 0.95 * math.Exp(-math.Log(x/0.7)*math.Log(x/0.7)) }

func TestMoreResourceThatMakesItWorseIsTold(t *testing.T) {
	l := process()
	uniform(t, l, 600, 1, peaked)
	if !l.Falls() {
		t.Fatal("a peak was taken for a rise")
	}
	for _, x := range []float64{0.3, 0.7, 1.2, 1.8} {
		if b := l.Predict(20*x, 20); math.Abs(b.Mean-peaked(x)) > 0.05 || b.Lower > peaked(x)+0.02 || b.Upper < peaked(x)-0.02 {
			t.Errorf("at %v: %+v, truth %v", x, b, peaked(x))
		}
	}
	if b := l.Predict(20*4, 20); b.Lower > 0 {
		t.Errorf("beyond a falling end: %+v", b)
	}
	c := learn.CurveOf(l, 20, 2, 40, level)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if top, end := c.Eval(14).Mean, c.Eval(40).Mean; end > top-0.3 {
		t.Errorf("the curve goes from %v at the peak to %v: it must fall", top, end)
	}
}

func TestNoiseIsNotTakenForAFall(t *testing.T) {
	falls := 0
	for _, c := range learntest.Curves() {
		for seed := range uint64(4) {
			l, env := process(), learntest.NewEnvironment(c, 900+seed)
			for i := range 600 {
				if err := l.Observe(env.Next()); err != nil {
					t.Fatal(err)
				}
				if i%50 == 0 && l.Falls() {
					falls++
				}
			}
		}
	}
	if falls > 2 {
		t.Errorf("a fall was seen %d times in 384 looks at curves that rise", falls)
	}
}

func TestAnotherVersionStartsFromTheOldCurveWithAWiderBand(t *testing.T) {
	l := process()
	uniform(t, l, 2000, 2, saturating)
	before := l.Predict(14, 20)
	l.Revise()
	after := l.Predict(14, 20)
	if math.Abs(after.Mean-before.Mean) > 0.03 || after.Upper-after.Lower < 2*(before.Upper-before.Lower) {
		t.Errorf("before %+v, after %+v", before, after)
	}
	uniform(t, l, 240, 3, func(x float64) float64 { return 0.8 * saturating(x) })
	if b, truth := l.Predict(14, 20), 0.8*saturating(0.7); math.Abs(b.Mean-truth) > 0.05 {
		t.Errorf("240 reports later: %+v, truth %v", b, truth)
	}
	process().Revise() // of nothing: nothing
}

func TestADropIsFoundWithinThreeRoundsAndASteadyServiceIsNot(t *testing.T) {
	for seed := range uint64(5) {
		l := process()
		uniform(t, l, 2400, 10+seed, saturating)
		if l.Changes() != 0 {
			t.Fatalf("seed %d: %d changes of a steady service", seed, l.Changes())
		}
		uniform(t, l, 36, 20+seed, func(x float64) float64 { return 0.7 * saturating(x) })
		if l.Changes() != 1 || l.Reports() > 36 {
			t.Errorf("seed %d: %d changes, %d reports held after a drop by 30%%", seed, l.Changes(), l.Reports())
		}
	}
}

func TestOneBadRoundDoesNotMakeItForget(t *testing.T) {
	l := process()
	uniform(t, l, 600, 4, saturating)
	for i := range uint64(10) {
		uniform(t, l, 12, 30+i, func(x float64) float64 { return 0.3 * saturating(x) })
		uniform(t, l, 60, 50+i, saturating)
	}
	if l.Changes() != 0 {
		t.Errorf("%d changes", l.Changes())
	}
}

func TestSixtyFourKiBAreEnough(t *testing.T) {
	const learners = 50
	var held [learners]*gp.Process
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range held {
		held[i] = process()
		uniform(t, held[i], 400, uint64(i), saturating)
		uniform(t, held[i], 60, uint64(i), func(x float64) float64 { return 0.9 * saturating(x) })
	}
	each := float64(heap()-before) / learners
	t.Logf("%.1f KiB per learner", each/1024)
	if each > 64<<10 {
		t.Errorf("%.0f bytes per learner", each)
	}
	runtime.KeepAlive(&held)
}

func TestNoiseOfNumbersIsEstimatedFromTheReports(t *testing.T) {
	width := func(noise float64) float64 {
		l, r := process(), rand.New(rand.NewPCG(1, 2))
		for range 300 {
			a := 10 + 100*r.Float64()
			o := learn.Observation{Allocation: a, Load: 1, Performance: max(0, 500*a/(a+30)*(1+noise*r.NormFloat64()))}
			if err := l.Observe(o); err != nil {
				t.Fatal(err)
			}
		}
		b := l.Predict(60, 1)
		if truth := 500 * 60.0 / 90; b.Lower > truth || b.Upper < truth {
			t.Errorf("noise %v: %+v, truth %v", noise, b, truth)
		}
		return (b.Upper - b.Lower) / b.Mean
	}
	if quiet, loud := width(0.01), width(0.2); loud < 3*quiet || quiet > 0.1 {
		t.Errorf("relative width %v with 1%% noise, %v with 20%%", quiet, loud)
	}
}

// numbers are reports of a rate at a constant load, with a step.
func numbers(t *testing.T) *gp.Process {
	l, r := process(), rand.New(rand.NewPCG(8, 2))
	for range 2000 {
		a := 10 * math.Exp2(3*r.Float64())
		v := 100 + a
		if a > 30 {
			v += 50
		}
		if err := l.Observe(learn.Observation{Allocation: a, Load: 2, Performance: v * (1 + 0.02*r.NormFloat64())}); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func TestACurveIsStraightOverTheLogarithmBetweenItsBends(t *testing.T) {
	l := numbers(t)
	at := l.Bends(2)
	slices.Sort(at)
	if len(at) < 100 || at[0] < 9.9 || at[len(at)-1] > 80.1 {
		t.Fatalf("%d bends from %v to %v", len(at), at[0], at[len(at)-1])
	}
	for i := 1; i < len(at); i++ {
		p, q := l.Predict(at[i-1], 2).Mean, l.Predict(at[i], 2).Mean
		for _, share := range []float64{0.25, 0.5, 0.75} {
			a := at[i-1] * math.Pow(at[i]/at[i-1], share)
			if got, want := l.Predict(a, 2).Mean, p+share*(q-p); math.Abs(got-want) > 1e-6*want {
				t.Errorf("between %v and %v: %v, want %v", at[i-1], at[i], got, want)
			}
		}
	}
}

func TestALittleLessThanWasEverTriedIsThoughtToHurtLittle(t *testing.T) {
	l := numbers(t)
	least := slices.Min(l.Bends(2))
	mean := l.Predict(least, 2).Mean
	for octaves, share := range map[float64]float64{0.1: 0.9965, 0.5: 0.917, 1: 0.7071, 2: 0.25} {
		b := l.Predict(least*math.Exp2(-octaves), 2)
		if math.Abs(b.Mean/mean-share) > 5e-3 || b.Lower != 0 {
			t.Errorf("%v octaves below: %+v, %v of what it was, want %v and nothing for certain", octaves, b, b.Mean/mean, share)
		}
	}
}

func FuzzRestoreIsTotal(f *testing.F) { learntest.FuzzRestore(f, fresh) }
