package sojourn

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

// truth is the sojourn time in ms of M/M/1 per unit.
func truth(work, rate, allocation float64) float64 {
	return work / (1 - rate/1000*work/allocation)
}

func TestOneIntervalOfSpansTellsTheWholeCurve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		work := rapid.Float64Range(0.1, 50).Draw(t, "work")
		rate := rapid.Float64Range(1, 5000).Draw(t, "rate")
		needed := rate / 1000 * work
		at := needed / rapid.Float64Range(0.05, 0.97).Draw(t, "load")
		var c Curve
		if err := c.Observe(Report{Allocation: at, Rate: rate, Mean: truth(work, rate, at)}); err != nil {
			t.Fatal(err)
		}
		if math.Abs(c.Needed()/needed-1) > 1e-6 {
			t.Fatalf("needs %v, want %v", c.Needed(), needed)
		}
		other := needed / rapid.Float64Range(0.05, 0.97).Draw(t, "other")
		if got, want := c.Mean(other, 0), truth(work, rate, other); math.Abs(got/want-1) > 1e-5 {
			t.Fatalf("at %v: %v ms, want %v", other, got, want)
		}
	})
}

func TestMoreNeverTakesLongerAndCautionNeverShorter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Curve
		for range rapid.IntRange(1, 5).Draw(t, "reports") {
			r := Report{Allocation: rapid.Float64Range(0.5, 50).Draw(t, "a"), Rate: rapid.Float64Range(1, 5000).Draw(t, "r"), Mean: rapid.Float64Range(0.1, 8000).Draw(t, "T")}
			if err := c.Observe(r); err != nil {
				t.Fatal(err)
			}
		}
		before := math.Inf(1)
		for a := 0.25; a < 100; a += 0.25 {
			m := c.Mean(a, 0)
			if m > before || !(m > 0) || c.Mean(a, 1) < m {
				t.Fatalf("at %v: %v ms, before %v, careful %v", a, m, before, c.Mean(a, 1))
			}
			before = m
		}
	})
}

func TestNoiseAveragesOutAndAnotherServiceIsLearntAtOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var c Curve
	observe := func(work float64) {
		if err := c.Observe(Report{Allocation: 8, Rate: 1000, Mean: truth(work, 1000, 8) * math.Exp(0.03*r.NormFloat64())}); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		observe(4)
	}
	if got := c.Needed(); math.Abs(got-4) > 0.15 {
		t.Errorf("needs %v, want 4", got)
	}
	observe(6)
	if got := c.Needed(); math.Abs(got-6) > 0.6 {
		t.Errorf("needs %v after a new version, want 6", got)
	}
}

func TestWhatIsSaturatedNeedsMoreThanItHas(t *testing.T) {
	var c Curve
	if err := c.Observe(Report{Allocation: 8, Rate: 1000, Mean: 5000}); err != nil {
		t.Fatal(err)
	}
	if n := c.Needed(); n < 7.9 || n > 8 {
		t.Errorf("needs %v of 8 at 5 s a visit", n)
	}
	if c.Mean(8, 0) < 10*c.Mean(10, 0) {
		t.Errorf("%v ms with 8, %v with 10", c.Mean(8, 0), c.Mean(10, 0))
	}
}

func TestNonsenseIsRefusedAndTeachesNothing(t *testing.T) {
	for _, r := range []Report{{}, {0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {-1, 1, 1}, {1, 1, math.NaN()}, {1, math.Inf(1), 1}, {1e300, 1, 1}} {
		var c Curve
		if err := c.Observe(r); !errors.Is(err, trimtab.ErrInvalid) || c.Reports() != 0 {
			t.Errorf("%+v: %v, %d reports", r, err, c.Reports())
		}
	}
	var c Curve
	if !math.IsInf(c.Mean(1, 0), 1) {
		t.Error("a curve without reports knows a time")
	}
}

func TestASnapshotGivesTheSameBits(t *testing.T) {
	var c, d Curve
	for i := range 5 {
		if err := c.Observe(Report{Allocation: 8, Rate: 1000, Mean: 5 + float64(i)/9}); err != nil {
			t.Fatal(err)
		}
	}
	b, err := c.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Restore(b); err != nil || d != c {
		t.Errorf("%+v, want %+v: %v", d, c, err)
	}
}

func FuzzRestoreNeverPanicsAndRefusesWhatIsNotASnapshot(f *testing.F) {
	var c Curve
	_ = c.Observe(Report{Allocation: 8, Rate: 1000, Mean: 5})
	b, _ := c.Snapshot()
	f.Add(b)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var c Curve
		if err := c.Restore(b); err != nil && (c != Curve{} || !errors.Is(err, trimtab.ErrInvalid)) {
			t.Errorf("%+v: %v", c, err)
		}
		if m := c.Mean(3, 1); math.IsNaN(m) {
			t.Errorf("%+v predicts %v", c, m)
		}
	})
}
