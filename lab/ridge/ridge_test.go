package ridge_test

import (
	"errors"
	"math"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/learntest"
	"github.com/trimtab/trimtab/lab/ridge"
)

func curve(t testing.TB) learn.Learner {
	t.Helper()
	c, err := ridge.New(0.9)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func taught(t testing.TB, env *learntest.Environment, n int) learn.Learner {
	t.Helper()
	c := curve(t)
	for range n {
		if err := c.Observe(env.Next()); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestBoundsOfACurveHoldTheirLevel(t *testing.T) {
	all := learntest.Curves()
	for _, r := range learntest.Coverage(func() learn.Learner { return curve(t) }, []learntest.Curve{all[0], all[4], all[len(all)-1]},
		learntest.Plan{Seeds: 10, Counts: []int{60, 600}, From: 1000}) {
		if p := r.Likely(0.9); p < 1e-3 {
			t.Errorf("%s after %d reports: %d of %d points inside, probability %.2g", r.Curve, r.Count, r.Hits, r.Trials, p)
		}
	}
}

func TestACurveIsTotalAndDoesNotFall(t *testing.T) {
	for _, c := range learntest.Curves() {
		env := learntest.NewEnvironment(c, 2)
		for _, n := range []int{0, 1, 3, 400} {
			l := taught(t, env, n)
			before := trimtab.Band{}
			for i := range 300 {
				x := c.Low * math.Pow(2*c.High/c.Low, float64(i)/299)
				b := l.Predict(x*env.Load(), env.Load())
				if !(b.Lower >= 0 && b.Lower <= b.Mean && b.Mean <= b.Upper && b.Upper < math.Inf(1)) || b.Mean < before.Mean-1e-9 {
					t.Fatalf("%s after %d reports: %+v at %v, %+v before", c.Name, n, b, x, before)
				}
				before = b
			}
			for _, a := range []float64{0, 5e-324, math.MaxFloat64, math.Inf(1), math.NaN()} {
				for _, load := range []float64{0, 1e-300, 1, math.MaxFloat64} {
					if b := l.Predict(a, load); !(b.Lower >= 0 && b.Lower <= b.Mean && b.Mean <= b.Upper && b.Upper < math.Inf(1)) {
						t.Fatalf("at %v, %v: %+v", a, load, b)
					}
				}
			}
		}
	}
}

func TestADropIsLearntByACurve(t *testing.T) {
	c := learntest.Curves()[0]
	env := learntest.NewEnvironment(c, 12)
	l := taught(t, env, 800)
	env.Factor = 0.7
	for range 240 {
		_ = l.Observe(env.Next())
	}
	if b, truth := l.Predict(10*c.High, 10), 0.7*c.At(c.High); math.Abs(b.Mean-truth) > 0.08 {
		t.Errorf("%+v, truth %v", b, truth)
	}
}

func TestACurvesMemoryIsBounded(t *testing.T) {
	learntest.MemoryIsBounded(t, func() learn.Learner { return curve(t) }, 8000)
}

func TestACurveAnswersWhatLearnersCanDo(t *testing.T) {
	learntest.Traits(t, func() learn.Learner { return curve(t) })
}

func TestACurvesSnapshotGivesTheSameBits(t *testing.T) {
	env := learntest.NewEnvironment(learntest.Curves()[0], 5)
	a, b := taught(t, env, 300), curve(t)
	state, err := a.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Restore(state); err != nil {
		t.Fatal(err)
	}
	for x := 0.1; x < 100; x *= 1.1 {
		if a.Predict(x, 20) != b.Predict(x, 20) {
			t.Fatalf("at %v: %+v and %+v", x, a.Predict(x, 20), b.Predict(x, 20))
		}
	}
	other, err := ridge.New(0.8)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Restore(state); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("another level took it: %v", err)
	}
}

func TestNonsenseTeachesACurveNothing(t *testing.T) {
	l := curve(t)
	for _, v := range []float64{math.NaN(), math.Inf(1), -1} {
		for i := range 5 {
			o := learn.Observation{Allocation: 5, Load: 10, Performance: 0.8, Requests: 100}
			*[]*float64{&o.Allocation, &o.Load, &o.Performance, &o.Requests, &o.Sigma}[i] = v
			if err := l.Observe(o); !errors.Is(err, trimtab.ErrInvalid) || l.Reports() != 0 {
				t.Errorf("%+v: %v", o, err)
			}
		}
	}
	for _, level := range []float64{0, 1, math.NaN()} {
		if _, err := ridge.New(level); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("level %v: %v", level, err)
		}
	}
}

func FuzzACurveRefusesWhatIsNotASnapshot(f *testing.F) {
	state, _ := taught(f, learntest.NewEnvironment(learntest.Curves()[0], 5), 30).Snapshot()
	f.Add(state)
	f.Add(state[:len(state)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		l := curve(t)
		if err := l.Restore(b); err != nil && (l.Reports() != 0 || !errors.Is(err, trimtab.ErrInvalid)) {
			t.Errorf("%d reports: %v", l.Reports(), err)
		}
		if p := l.Predict(3, 3); math.IsNaN(p.Mean) {
			t.Errorf("predicts %+v", p)
		}
	})
}
