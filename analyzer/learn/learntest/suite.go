package learntest

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
)

// Run checks the whole contract of learn.Learner on the learners that make returns, which must be
// equal and new. Their bounds must be meant for level 0.9.
func Run(t *testing.T, make func() learn.Learner) {
	for _, c := range []struct {
		name string
		f    func(*testing.T, func() learn.Learner)
	}{
		{"PredictIsTotal", total},
		{"BandsAreInOrderAndPerformanceDoesNotFall", ordered},
		{"SameReportsGiveSameBits", deterministic},
		{"PredictChangesNothing", pure},
		{"SnapshotGivesSameBits", snapshot},
		{"DamagedSnapshotsAreRefused", damaged},
		{"NonsenseIsRefusedAndTeachesNothing", nonsense},
		{"OptimismNarrowsWithData", narrows},
		{"OutsideTheVisitedRangeOnlyMonotonicityIsClaimed", outside},
		{"BoundsHoldTheirLevel", level},
		{"MemoryIsBounded", bounded},
		{"ADropOfPerformanceIsLearnt", forgets},
		{"CurvesAreValid", curves},
		{"AServiceThatDoesNotScaleIsNotPredictedAsIfItDid", unscaled},
		{"NoiseThatPersistsIsNotTakenForAChange", persistent},
	} {
		t.Run(c.name, func(t *testing.T) { c.f(t, make) })
	}
	Traits(t, make)
}

func teach(t *testing.T, l learn.Learner, env *Environment, n int) {
	t.Helper()
	for range n {
		if err := l.Observe(env.Next()); err != nil {
			t.Fatal(err)
		}
	}
}

// grid is where predictions are compared: inside, outside, and far out.
func grid() (out [][2]float64) {
	for _, l := range []float64{0, 1e-300, 0.01, 1, 18, 20, 25, 1e6, math.MaxFloat64} {
		for _, a := range []float64{0, 5e-324, 0.01, 0.5, 1, 4, 7, 10, 11, 14, 20, 30, 80, 1e9, math.MaxFloat64} {
			out = append(out, [2]float64{a, l})
		}
	}
	return out
}

func bands(l learn.Learner) (out []trimtab.Band) {
	for _, q := range grid() {
		out = append(out, l.Predict(q[0], q[1]))
	}
	return out
}

// same compares bits.
func same(t *testing.T, a, b learn.Learner) {
	t.Helper()
	x, y := bands(a), bands(b)
	for i := range x {
		if x[i] != y[i] {
			t.Fatalf("at %v: %+v and %+v", grid()[i], x[i], y[i])
		}
	}
	if a.Reports() != b.Reports() {
		t.Fatalf("%d and %d reports", a.Reports(), b.Reports())
	}
	if x, y := told(a), told(b); !reflect.DeepEqual(x, y) {
		t.Fatalf("one: %v; the other: %v", x, y)
	}
}

func kinds() []Curve {
	c := Curves()
	return []Curve{c[0], c[4], c[6], c[len(c)-1]}
}

func total(t *testing.T, make func() learn.Learner) {
	for _, c := range kinds() {
		l, env := make(), NewEnvironment(c, 1)
		for _, n := range []int{0, 1, 1, 10, 500} {
			teach(t, l, env, n)
			for i, b := range bands(l) {
				ok := b.Lower >= 0 && b.Lower <= b.Mean && b.Mean <= b.Upper && !math.IsInf(b.Upper, 0)
				if !ok || (!c.Rate && b.Upper > 1) {
					t.Fatalf("%s after %d reports at %v: %+v", c.Name, l.Reports(), grid()[i], b)
				}
			}
		}
	}
}

func ordered(t *testing.T, make func() learn.Learner) {
	for _, c := range kinds() {
		l, env := make(), NewEnvironment(c, 2)
		teach(t, l, env, 400)
		before := trimtab.Band{}
		for i := range 500 {
			x := c.Low * math.Pow(2*c.High/c.Low, float64(i)/499)
			b := l.Predict(x*env.Load(), env.Load())
			if b.Mean < before.Mean*(1-0.02)-1e-9 {
				t.Fatalf("%s: the mean falls from %v to %v at %v", c.Name, before.Mean, b.Mean, x)
			}
			before = b
		}
	}
}

func deterministic(t *testing.T, make func() learn.Learner) {
	for _, c := range kinds() {
		a, b := make(), make()
		teach(t, a, NewEnvironment(c, 3), 500)
		teach(t, b, NewEnvironment(c, 3), 500)
		same(t, a, b)
	}
}

func pure(t *testing.T, make func() learn.Learner) {
	a, b := make(), make()
	ea, eb := NewEnvironment(Curves()[0], 4), NewEnvironment(Curves()[0], 4)
	for range 200 {
		teach(t, a, ea, 1)
		teach(t, b, eb, 1)
		bands(a)
	}
	same(t, a, b)
}

func snapshot(t *testing.T, make func() learn.Learner) {
	for _, c := range kinds() {
		for _, n := range []int{0, 1, 37, 700} {
			a, b := make(), make()
			ea, eb := NewEnvironment(c, 5), NewEnvironment(c, 5)
			teach(t, a, ea, n)
			for range n {
				eb.Next()
			}
			state, err := a.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			teach(t, b, NewEnvironment(c, 99), 20)
			if err := b.Restore(state); err != nil {
				t.Fatal(err)
			}
			same(t, a, b)
			again, err := b.Snapshot()
			if err != nil || !bytes.Equal(state, again) {
				t.Fatalf("the snapshot of a restored learner differs: %v", err)
			}
			teach(t, a, ea, 100)
			teach(t, b, eb, 100)
			same(t, a, b)
		}
	}
}

func damaged(t *testing.T, make func() learn.Learner) {
	a := make()
	teach(t, a, NewEnvironment(Curves()[0], 6), 100)
	state, err := a.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	b, untouched := make(), make()
	teach(t, b, NewEnvironment(Curves()[0], 7), 50)
	teach(t, untouched, NewEnvironment(Curves()[0], 7), 50)
	refuse := func(what string, state []byte) {
		if err := b.Restore(state); !errors.Is(err, trimtab.ErrInvalid) {
			t.Fatalf("%s: %v, want trimtab.ErrInvalid", what, err)
		}
	}
	refuse("nothing", nil)
	refuse("text", []byte("not a snapshot"))
	for i := 0; i < len(state); i += 1 + len(state)/200 {
		refuse("cut off", state[:i])
		flipped := bytes.Clone(state)
		flipped[i] ^= 1 << (i % 8)
		refuse("a bit flipped", flipped)
	}
	same(t, b, untouched)
}

func nonsense(t *testing.T, make func() learn.Learner) {
	good := learn.Observation{Time: time.Unix(1, 0), Allocation: 5, Load: 10, Performance: 0.8, Requests: 100}
	a, b := make(), make()
	teach(t, a, NewEnvironment(Curves()[0], 8), 50)
	teach(t, b, NewEnvironment(Curves()[0], 8), 50)
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, -1e-9} {
		for i := range 5 {
			o := good
			*[]*float64{&o.Allocation, &o.Load, &o.Performance, &o.Requests, &o.Sigma}[i] = v
			if err := a.Observe(o); !errors.Is(err, trimtab.ErrInvalid) {
				t.Errorf("%+v: %v, want trimtab.ErrInvalid", o, err)
			}
		}
	}
	for _, o := range []learn.Observation{
		{Load: 10, Performance: 0.8, Requests: 100},
		{Allocation: 5, Load: 10, Performance: 1.2, Requests: 100},
		{Allocation: math.MaxFloat64, Load: 10, Performance: 1},
		{Allocation: 5, Load: 10, Performance: math.MaxFloat64},
	} {
		if err := a.Observe(o); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v, want trimtab.ErrInvalid", o, err)
		}
	}
	same(t, a, b)
}

func narrows(t *testing.T, make func() learn.Learner) {
	l, env := make(), NewEnvironment(Curves()[0], 9)
	env.Curve.Low, env.Curve.High = 0.4, 0.6
	width := func() float64 {
		b := l.Predict(0.5*env.Load(), env.Load())
		return b.Upper - b.Lower
	}
	teach(t, l, env, 1)
	first := width()
	teach(t, l, env, 59)
	early := width()
	teach(t, l, env, 2000)
	if late := width(); late > early || early > first || late > 0.06 {
		t.Errorf("width %v after 1, %v after 60, %v after 2060 reports", first, early, late)
	}
}

func outside(t *testing.T, make func() learn.Learner) {
	l, env := make(), NewEnvironment(Curves()[0], 10)
	env.Curve.Low, env.Curve.High = 0.3, 0.5
	env.allocation = 0.4 * env.load
	teach(t, l, env, 500)
	edge := l.Predict(0.4*20, 20)
	if b := l.Predict(40, 20); b.Upper != 1 || b.Lower < edge.Lower-0.1 || b.Lower > Curves()[0].At(2) {
		t.Errorf("far above the visited range: %+v", b)
	}
	if b := l.Predict(0.05*20, 20); b.Lower > 0.01 || b.Upper > edge.Upper+0.1 || b.Upper < Curves()[0].At(0.05) {
		t.Errorf("far below the visited range: %+v", b)
	}
}

func level(t *testing.T, make func() learn.Learner) {
	for _, r := range Coverage(make, kinds(), Plan{Seeds: 10, Counts: []int{60, 600}, From: 1000}) {
		if p := r.Likely(0.9); p < 1e-3 {
			t.Errorf("%s after %d reports: %d of %d points inside, probability %.2g", r.Curve, r.Count, r.Hits, r.Trials, p)
		}
	}
}

func bounded(t *testing.T, make func() learn.Learner) { MemoryIsBounded(t, make, 15_000) }

// MemoryIsBounded checks that a learner uses no more memory after n reports, more than 5,000,
// than after 5,000.
func MemoryIsBounded(t *testing.T, make func() learn.Learner, n int) {
	t.Helper()
	size := func(l learn.Learner) (heap uint64, snapshot int) {
		state, err := l.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, len(state)
	}
	l, env := make(), NewEnvironment(Curves()[0], 11)
	env.Scale = 0.02
	teach(t, l, env, 5000)
	before, _ := size(l)
	teach(t, l, env, n-5000)
	after, state := size(l)
	if after > before+256<<10 || state > 256<<10 {
		t.Errorf("%d bytes after 5,000 reports, %d after %d; snapshot of %d", before, after, n, state)
	}
	if held := l.Reports(); held < 1000 || held > n {
		t.Errorf("%d reports held", held)
	}
}

func forgets(t *testing.T, make func() learn.Learner) {
	for _, c := range []Curve{Curves()[0], Curves()[1], Curves()[7]} {
		l, env := make(), NewEnvironment(c, 12)
		teach(t, l, env, 800)
		env.Factor = 0.7
		teach(t, l, env, 120)
		x := env.allocation / env.load
		b := l.Predict(env.allocation, env.load)
		if truth := 0.7 * c.At(x); math.Abs(b.Mean-truth) > 0.08*c.At(c.High) {
			t.Errorf("%s, 120 reports after a drop by 30%%: %+v at %v, truth %v, before %v", c.Name, b, x, truth, c.At(x))
		}
	}
}

func curves(t *testing.T, make func() learn.Learner) {
	if c := learn.CurveOf(make(), 10, 1, 40, 0.9); c != nil {
		t.Errorf("a curve of nothing: %+v", c)
	}
	for _, k := range kinds() {
		l, env := make(), NewEnvironment(k, 13)
		for _, n := range []int{1, 5, 300} {
			teach(t, l, env, n)
			for _, r := range [][2]float64{{0, 40}, {0.1, 8}, {1, 1.0000001}, {5, 1e9}, {0, 1e-9}} {
				c := learn.CurveOf(l, env.Load(), r[0], r[1], 0.9)
				if c == nil {
					t.Fatalf("no curve from %v to %v", r[0], r[1])
				}
				if err := c.Validate(); err != nil {
					t.Fatal(err)
				}
				if first, last := c.Knots[0].Allocation, c.Knots[len(c.Knots)-1].Allocation; first != r[0] || last != r[1] {
					t.Fatalf("knots from %v to %v, want %v", first, last, r)
				}
			}
		}
		for _, bad := range [][3]float64{{0, 1, 2}, {math.NaN(), 1, 2}, {5, 2, 2}, {5, -1, 2}, {5, 1, math.Inf(1)}} {
			if c := learn.CurveOf(l, bad[0], bad[1], bad[2], 0.9); c != nil {
				t.Errorf("a curve for %v", bad)
			}
		}
	}
}
