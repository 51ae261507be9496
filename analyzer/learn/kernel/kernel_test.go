package kernel

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
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

func (w *world) truth(x []float64) float64 {
	s := 0.0
	for i, v := range x {
		s += w.need[i] * math.Exp(-v)
	}
	return s
}

// draw returns logarithms of 2 to 17 units.
func (w *world) draw() []float64 {
	x := make([]float64, len(w.need))
	for i := range x {
		x[i] = math.Log(float64(2 + w.r.IntN(16)))
	}
	return x
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
		v, err := New(Config{Dimensions: 3, Level: 0.9, Joint: rapid.Float64Range(0, 1).Draw(t, "joint")})
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
				k.Set(i, j, f.scale*slow(v.config, v.Points[i].X, v.Points[j].X))
			}
			k.Set(i, i, k.At(i, i)+f.noise/v.Points[i].Weight+1e-9*f.scale)
			kx.SetVec(i, f.scale*slow(v.config, at, v.Points[i].X))
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
func slow(c Config, a, b []float64) float64 {
	m := func(r float64) float64 {
		return (1 + math.Sqrt(5)*r + 5*r*r/3) * math.Exp(-math.Sqrt(5)*r)
	}
	add, square := 0.0, 0.0
	for i := range a {
		d := math.Abs(a[i] - b[i])
		add += m(d/c.Length) / float64(len(a))
		square += d * d
	}
	return c.Joint*m(math.Sqrt(square)/c.JointLength) + (1-c.Joint)*add
}

func TestTheAdditiveKernelLearnsASumFromFarFewerReports(t *testing.T) {
	const n = 12
	additive := must(t, Config{Dimensions: n, Level: 0.9})
	joint := must(t, Config{Dimensions: n, Level: 0.9, Joint: 1})
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
	plain, told := must(t, Config{Dimensions: n, Level: 0.9}), must(t, Config{Dimensions: n, Level: 0.9})
	// The prior is 20% off.
	if err := told.Expect(func(u []float64) float64 { return 0.8 * w.truth(u) }, w.need); err != nil {
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
		v := must(t, Config{Dimensions: 6, Level: 0.9})
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

func TestASectionIsWhatIsPredictedAlongOneCoordinate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "n")
		v, err := New(Config{Dimensions: n, Level: 0.9, Joint: rapid.Float64Range(0, 1).Draw(t, "joint"), Wander: rapid.Float64Range(0, 0.9).Draw(t, "wander")})
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(rapid.Uint64().Draw(t, "seed"), n, 0.05)
		for range rapid.IntRange(0, 12).Draw(t, "reports") {
			x := w.draw()
			_ = v.Observe(x, w.truth(x))
		}
		x, i := w.draw(), rapid.IntRange(0, n-1).Draw(t, "i")
		at := []float64{-1, x[i], 0.3, 2}
		for j, got := range v.Section(x, i, at) {
			there := slices.Clone(x)
			there[i] = at[j]
			want := v.Predict(there)
			if math.Abs(got.Mean-want.Mean) > 1e-9 || math.Abs(got.Upper-want.Upper) > 1e-6 || math.Abs(got.Mean-v.Mean(there)) > 1e-9 {
				t.Fatalf("at %v: %+v, want %+v", at[j], got, want)
			}
		}
	})
}

// Everything takes three times as long for a while, whatever anybody has.
func TestWhatWandersIsNotTakenForTheAllocations(t *testing.T) {
	const n = 6
	off := func(wander float64) float64 {
		v := must(t, Config{Dimensions: n, Level: 0.9, Wander: wander})
		w := newWorld(3, n, 0.02)
		for i := range 60 {
			x := w.draw()
			y := math.Log(w.truth(x))
			if i >= 20 && i < 40 {
				y += math.Log(3)
			}
			_ = v.Observe(x, y)
		}
		e := 0.0
		for range 200 {
			x, y := w.draw(), w.draw()
			d := v.Mean(x) - v.Mean(y) - math.Log(w.truth(x)/w.truth(y))
			e += d * d
		}
		return math.Sqrt(e / 200)
	}
	if with, without := off(0.3), off(0); with > 0.8*without {
		t.Errorf("differences are off by %.3f, without it by %.3f", with, without)
	}
}

func TestTheNoiseOfReportsIsLearntWithoutRepeats(t *testing.T) {
	noise := func(std float64) float64 {
		v := must(t, Config{Dimensions: 3, Level: 0.9})
		newWorld(2, 3, std).teach(t, v, 100)
		return math.Sqrt(v.fitted().noise)
	}
	for _, std := range []float64{0.05, 0.1, 0.4} {
		if got := noise(std); got < std/2 || got > std*2 {
			t.Errorf("a deviation of %.3f is seen, %v is there", got, std)
		}
	}
}

// In the beginning everything takes 40 times as long, and says little else.
func TestWhatIsFarAboveTheRestHidesNoDifferenceBelowACeiling(t *testing.T) {
	const n = 6
	off := func(ceiling float64) float64 {
		v := must(t, Config{Dimensions: n, Level: 0.9, Ceiling: ceiling})
		w := newWorld(3, n, 0)
		for i := range 60 {
			x := w.draw()
			y := math.Log(w.truth(x)) + 0.05*w.r.NormFloat64()
			if i < 15 {
				y += math.Log(40)
			}
			_ = v.Observe(x, y)
		}
		e := 0.0
		for range 200 {
			x, y := w.draw(), w.draw()
			d := v.Mean(x) - v.Mean(y) - math.Log(w.truth(x)/w.truth(y))
			e += d * d
		}
		return math.Sqrt(e / 200)
	}
	with, without := off(1), off(0)
	t.Logf("differences are off by %.3f, without a ceiling by %.3f", with, without)
	if with > 0.8*without {
		t.Errorf("differences are off by %.3f, without a ceiling by %.3f", with, without)
	}
}

func TestTheCeilingHidesWhatWasSeenAboveItAlone(t *testing.T) {
	for _, c := range []struct{ ceiling, seen, want float64 }{{0, 0.5, 0.5}, {1, 0.5, 0.5}, {0, 3, 3}, {1, 3, 5}} {
		v := must(t, Config{Dimensions: 2, Level: 0.9, Ceiling: c.ceiling})
		bad := []float64{-8, 0}
		if err := v.Expect(func(x []float64) float64 { return 5 * x[0] / bad[0] }, []float64{1, 1}); err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			_ = v.Observe([]float64{0, float64(i) / 10}, 0)
		}
		for range 12 {
			_ = v.Observe(bad, c.seen)
		}
		if m := v.Mean(bad); math.Abs(m-c.want) > 0.25 {
			t.Errorf("ceiling %v: %.2f is expected where 5 was and %v was seen twelve times, want %v", c.ceiling, m, c.seen, c.want)
		}
	}
}

// What was far below does not hide what is told apart now.
func TestTheCeilingFollowsTheNewestReports(t *testing.T) {
	v := must(t, Config{Dimensions: 1, Level: 0.9, Points: 40, Ceiling: 1})
	for i := range 60 {
		x, y := float64(i%10)/5, 0.0
		if i >= 10 {
			x, y = 4+x, 3-0.5*x
		}
		_ = v.Observe([]float64{x}, y)
	}
	if d := v.Mean([]float64{4.2}) - v.Mean([]float64{5.6}); math.Abs(d-0.7) > 0.1 {
		t.Errorf("%.2f between what was seen 0.7 apart", d)
	}
}

func TestWhatIsFarFromAllElseIsKept(t *testing.T) {
	v := must(t, Config{Dimensions: 2, Level: 0.9, Points: 10})
	far := []float64{-3, -3}
	_ = v.Observe(far, 7)
	for i := range 200 {
		_ = v.Observe([]float64{1 + 0.02*float64(i%40), 1}, 0)
	}
	if m := v.Mean(far); math.Abs(m-7) > 0.5 {
		t.Errorf("%v is expected where 7 was seen", m)
	}
}

func TestMemoryIsBoundedAndTheNewestCount(t *testing.T) {
	v := must(t, Config{Dimensions: 4, Level: 0.9, Points: 20})
	w := newWorld(1, 4, 0)
	w.teach(t, v, 500)
	if len(v.Points) > 20 || v.Reports() != 500 {
		t.Errorf("%d points of %d reports", len(v.Points), v.Reports())
	}
	u := []float64{1, 1, 1, 1}
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
	v := must(t, Config{Dimensions: 2, Level: 0.9})
	for _, c := range []struct {
		x []float64
		y float64
	}{{[]float64{1}, 1}, {[]float64{1, 1e4}, 1}, {[]float64{math.NaN(), 1}, 1}, {[]float64{1, math.Inf(-1)}, 1}, {[]float64{1, 1}, math.NaN()}, {[]float64{1, 1}, math.Inf(1)}, {nil, 1}} {
		if err := v.Observe(c.x, c.y); !errors.Is(err, trimtab.ErrInvalid) || v.Reports() != 0 {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, w := range [][]float64{nil, {1}, {0, 0}, {-1, 2}, {math.NaN(), 1}, {math.Inf(1), 1}} {
		if err := v.Expect(func([]float64) float64 { return 0 }, w); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("weights %v: %v", w, err)
		}
	}
	for _, c := range []Config{{}, {Dimensions: 2}, {Dimensions: 2, Level: 1}, {Dimensions: 2, Level: 0.9, Points: 1},
		{Dimensions: 2, Level: 0.9, Joint: 2}, {Dimensions: 2, Level: 0.9, Length: math.NaN()}, {Dimensions: 257, Level: 0.9}, {Dimensions: 2, Level: 0.9, Wander: 1}, {Dimensions: 2, Level: 0.9, Memory: -1}, {Dimensions: 2, Level: 0.9, Ceiling: math.NaN()}} {
		if _, err := New(c); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if b := v.Predict([]float64{1, 1}); !(b.Lower < b.Mean && b.Mean < b.Upper) {
		t.Errorf("without reports: %+v", b)
	}
}

func TestASnapshotGivesTheSameBits(t *testing.T) {
	c := Config{Dimensions: 4, Level: 0.9, Points: 30, Joint: 0.3}
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
	c := Config{Dimensions: 2, Level: 0.9, Points: 5}
	v := must(f, c)
	for i := range 7 {
		_ = v.Observe([]float64{float64(i) / 3, float64(9-i) / 3}, float64(i))
	}
	b, _ := v.Snapshot()
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		u := must(t, c)
		if err := u.Restore(b); err != nil && (u.Reports() != 0 || !errors.Is(err, trimtab.ErrInvalid)) {
			t.Errorf("%d reports: %v", u.Reports(), err)
		}
		if p := u.Predict([]float64{3, 3}); math.IsNaN(p.Mean) {
			t.Errorf("predicts %+v", p)
		}
	})
}
