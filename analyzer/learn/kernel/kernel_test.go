package kernel

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

func must(t testing.TB, c Config) *Vector {
	t.Helper()
	v, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// world is a sum of hyperbolas, one per component, with noise.
type world struct {
	need  []float64
	noise float64
	r     *rand.Rand
}

func newWorld(seed uint64, n int, noise float64) *world {
	w := &world{noise: noise, r: rand.New(rand.NewPCG(seed, 1))}
	for range n {
		w.need = append(w.need, 0.5+2*w.r.Float64())
	}
	return w
}

func (w *world) truth(units []int) float64 {
	s := 0.0
	for i, u := range units {
		s += w.need[i] / float64(u+1)
	}
	return s
}

func (w *world) draw() []int {
	units := make([]int, len(w.need))
	for i := range units {
		units[i] = 1 + w.r.IntN(16)
	}
	return units
}

func (w *world) teach(t testing.TB, v *Vector, n int) {
	t.Helper()
	for range n {
		u := w.draw()
		if err := v.Observe(u, w.truth(u)+w.noise*w.r.NormFloat64()); err != nil {
			t.Fatal(err)
		}
	}
}

// off is the root mean square error over random allocations, relative to the
// spread of the truth.
func (w *world) off(v *Vector) float64 {
	var e, s, m float64
	const n = 300
	for range n {
		u := w.draw()
		f := w.truth(u)
		e += (v.Mean(u) - f) * (v.Mean(u) - f)
		m += f / n
		s += f * f
	}
	return math.Sqrt(e / (s - n*m*m))
}

func TestTheEstimateIsThatOfTheFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, err := New(Config{Dimensions: 3, MaxUnits: 20, Level: 0.9, Joint: rapid.Float64Range(0, 1).Draw(t, "joint")})
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(rapid.Uint64().Draw(t, "seed"), 3, 0.05)
		n := rapid.IntRange(1, 12).Draw(t, "n")
		for range n {
			u := w.draw()
			_ = v.Observe(u, w.truth(u))
		}
		at := w.draw()
		n = len(v.Points)
		f := v.fitted()
		k, kx, y := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
		for i := range n {
			for j := range n {
				k.Set(i, j, f.scale*slow(v.config, v.Points[i].Units, v.Points[j].Units))
			}
			k.Set(i, i, k.At(i, i)+v.noise()/v.Points[i].Weight+1e-9*f.scale)
			kx.SetVec(i, f.scale*slow(v.config, at, v.Points[i].Units))
			y.SetVec(i, v.Points[i].Y-f.level)
		}
		var a, b mat.VecDense
		if a.SolveVec(k, y) != nil || b.SolveVec(k, kx) != nil {
			t.Skip("badly conditioned")
		}
		mean := f.level + mat.Dot(kx, &a)
		std := math.Sqrt(math.Max(0, f.scale-mat.Dot(kx, &b)))
		got := v.Predict(at)
		if math.Abs(got.Mean-mean) > 1e-6 || math.Abs(got.Upper-mean-1.6448536*std) > 1e-4 || math.Abs(v.Mean(at)-got.Mean) > 1e-9 {
			t.Fatalf("%+v, want %v ± %v", got, mean, 1.6448536*std)
		}
	})
}

// slow is the kernel as it is written down.
func slow(c Config, a, b []int) float64 {
	m := func(r float64) float64 {
		return (1 + math.Sqrt(5)*r + 5*r*r/3) * math.Exp(-math.Sqrt(5)*r)
	}
	add, square := 0.0, 0.0
	for i := range a {
		d := math.Abs(math.Log(float64(a[i]+1) / float64(b[i]+1)))
		add += m(d/c.Length) / float64(len(a))
		square += d * d
	}
	return c.Joint*m(math.Sqrt(square)/c.JointLength) + (1-c.Joint)*add
}

func TestTheAdditiveKernelLearnsASumFromFarFewerReports(t *testing.T) {
	const n = 12
	additive := must(t, Config{Dimensions: n, MaxUnits: 20, Level: 0.9})
	joint := must(t, Config{Dimensions: n, MaxUnits: 20, Level: 0.9, Joint: 1})
	newWorld(1, n, 0.02).teach(t, additive, 60)
	newWorld(1, n, 0.02).teach(t, joint, 60)
	a, b := newWorld(1, n, 0).off(additive), newWorld(1, n, 0).off(joint)
	t.Logf("root mean square error after 60 reports: additive %.2f, joint %.2f of the spread", a, b)
	if a > 0.5 || a > 0.8*b {
		t.Errorf("additive %v, joint %v", a, b)
	}
}

func TestAPriorFromContributionsLearnsFaster(t *testing.T) {
	const n = 12
	w := newWorld(1, n, 0.02)
	plain, told := must(t, Config{Dimensions: n, MaxUnits: 20, Level: 0.9}), must(t, Config{Dimensions: n, MaxUnits: 20, Level: 0.9})
	// The prior is 20% off.
	if err := told.Expect(func(u []int) float64 { return 0.8 * w.truth(u) }, w.need); err != nil {
		t.Fatal(err)
	}
	newWorld(1, n, 0.02).teach(t, plain, 10)
	newWorld(1, n, 0.02).teach(t, told, 10)
	if a, b := w.off(told), w.off(plain); a > 0.5*b {
		t.Errorf("with a prior %v, without %v", a, b)
	}
}

func TestBoundsHoldTheirLevelOnSumsOfCurves(t *testing.T) {
	inside, all := 0, 0
	for seed := range uint64(20) {
		w := newWorld(seed, 6, 0.05)
		v := must(t, Config{Dimensions: 6, MaxUnits: 20, Level: 0.9})
		w.teach(t, v, 40)
		for range 50 {
			u := w.draw()
			if b := v.Predict(u); b.Lower <= w.truth(u) && w.truth(u) <= b.Upper {
				inside++
			}
			all++
		}
	}
	if share := float64(inside) / float64(all); share < 0.87 {
		t.Errorf("%v of the truth is inside bounds of level 0.9", share)
	}
}

func TestMemoryIsBoundedAndTheNewestCount(t *testing.T) {
	v := must(t, Config{Dimensions: 4, MaxUnits: 20, Level: 0.9, Points: 20})
	w := newWorld(1, 4, 0)
	w.teach(t, v, 500)
	if len(v.Points) > 20 || v.Reports() != 500 {
		t.Errorf("%d points of %d reports", len(v.Points), v.Reports())
	}
	u := []int{3, 3, 3, 3}
	for range 50 {
		_ = v.Observe(u, 1)
	}
	for range 40 {
		_ = v.Observe(u, 2)
	}
	if m := v.Mean(u); m < 1.9 {
		t.Errorf("%v after 40 reports of 2", m)
	}
}

func TestNonsenseIsRefusedAndTeachesNothing(t *testing.T) {
	v := must(t, Config{Dimensions: 2, MaxUnits: 9, Level: 0.9})
	for _, c := range []struct {
		units []int
		y     float64
	}{{[]int{1}, 1}, {[]int{1, 10}, 1}, {[]int{-1, 1}, 1}, {[]int{1, 1}, math.NaN()}, {[]int{1, 1}, math.Inf(1)}, {nil, 1}} {
		if err := v.Observe(c.units, c.y); !errors.Is(err, trimtab.ErrInvalid) || v.Reports() != 0 {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, w := range [][]float64{nil, {1}, {0, 0}, {-1, 2}, {math.NaN(), 1}, {math.Inf(1), 1}} {
		if err := v.Expect(func([]int) float64 { return 0 }, w); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("weights %v: %v", w, err)
		}
	}
	for _, c := range []Config{{}, {Dimensions: 2, MaxUnits: 9}, {Dimensions: 2, MaxUnits: 9, Level: 1}, {Dimensions: 2, MaxUnits: 9, Level: 0.9, Points: 1},
		{Dimensions: 2, MaxUnits: 9, Level: 0.9, Joint: 2}, {Dimensions: 2, MaxUnits: 9, Level: 0.9, Length: math.NaN()}} {
		if _, err := New(c); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if b := v.Predict([]int{1, 1}); !(b.Lower < b.Mean && b.Mean < b.Upper) {
		t.Errorf("without reports: %+v", b)
	}
}

func TestASnapshotGivesTheSameBits(t *testing.T) {
	c := Config{Dimensions: 4, MaxUnits: 20, Level: 0.9, Points: 30, Joint: 0.3}
	v, u := must(t, c), must(t, c)
	w := newWorld(1, 4, 0.1)
	w.teach(t, v, 50)
	b, err := v.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Restore(b); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		at := w.draw()
		if v.Predict(at) != u.Predict(at) {
			t.Fatalf("at %v: %v, want %v", at, u.Predict(at), v.Predict(at))
		}
	}
	c.Joint = 0.4
	if err := must(t, c).Restore(b); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("another kernel took it: %v", err)
	}
}

func FuzzRestoreNeverPanicsAndRefusesWhatIsNotASnapshot(f *testing.F) {
	c := Config{Dimensions: 2, MaxUnits: 9, Level: 0.9, Points: 5}
	v := must(f, c)
	for i := range 7 {
		_ = v.Observe([]int{i, 9 - i}, float64(i))
	}
	b, _ := v.Snapshot()
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		u := must(t, c)
		if err := u.Restore(b); err != nil && (u.Reports() != 0 || !errors.Is(err, trimtab.ErrInvalid)) {
			t.Errorf("%d reports: %v", u.Reports(), err)
		}
		if p := u.Predict([]int{3, 3}); math.IsNaN(p.Mean) {
			t.Errorf("predicts %+v", p)
		}
	})
}
