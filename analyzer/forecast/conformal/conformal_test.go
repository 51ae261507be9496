package conformal

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestTheScoresKeptAreTheLatestInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "kept")
		var tr tracker
		var all []float32
		for range rapid.IntRange(1, 60).Draw(t, "scores") {
			// Few values, so that there are ties.
			v := float64(rapid.IntRange(-3, 3).Draw(t, "score"))
			tr.keep(v, n)
			all = append(all, float32(v))
			want := slices.Clone(all[max(0, len(all)-n):])
			if !slices.Equal([]float32(tr.Scores), want) {
				t.Fatalf("scores %v, want %v", tr.Scores, want)
			}
			slices.Sort(want)
			if !slices.Equal(tr.sorted, want) {
				t.Fatalf("sorted %v, want %v", tr.sorted, want)
			}
		}
	})
}

func TestWhatIsKeptOfTheReportsIsBoundedFromTheFirstOn(t *testing.T) {
	for _, horizon := range []int{1, 12, MaxHorizon} {
		f, err := New("naive", Config{Horizon: horizon, Level: 0.9})
		if err != nil {
			t.Fatal(err)
		}
		keep := max(window, horizon)
		for i := range 3 * (keep + spare) {
			if err := f.Observe(float64(i)); err != nil {
				t.Fatal(err)
			}
			y := f.state.Y
			if n := len(y); n < min(i+1, keep) || n > keep+spare || cap(y) > keep+spare || y[n-1] != math.Sqrt(float64(i)) {
				t.Fatalf("horizon %d: after %d reports %d are kept in a place for %d, want %d to %d", horizon, i+1, n, cap(y), keep, keep+spare)
			}
		}
	}
}

func TestASnapshotOfAnEarlierVersionThatKeptMoreReportsGoesOn(t *testing.T) {
	f, err := New("naive", Config{Horizon: 2, Level: 0.9})
	if err != nil {
		t.Fatal(err)
	}
	for range window {
		if err := f.Observe(4); err != nil {
			t.Fatal(err)
		}
	}
	f.state.Y = append(slices.Repeat(Floats{2}, window), f.state.Y...)
	f.state.Seen = len(f.state.Y)
	saved, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	g, err := New("naive", Config{Horizon: 2, Level: 0.9})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Restore(saved); err != nil {
		t.Fatal(err)
	}
	if err := g.Observe(9); err != nil {
		t.Fatal(err)
	}
	if n := len(g.state.Y); n != window+1 || g.state.Y[n-1] != 3 {
		t.Errorf("%d reports are kept, the last %v, want %d and 3", n, g.state.Y[n-1], window+1)
	}
}

func TestAScoreIsNeverRoundedDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64Range(-1e8, 1e8).Draw(t, "score")
		var tr tracker
		tr.keep(v, 1)
		if float64(tr.Scores[0]) < v {
			t.Fatalf("%v is kept as %v", v, tr.Scores[0])
		}
	})
}

func TestTheBoundOfEvenScoresIsTheirQuantile(t *testing.T) {
	var tr tracker
	for i := range 999 {
		tr.keep(float64((i*7)%999+1), 1000)
	}
	for miss, want := range map[float64]float64{0.1: 900, 0.5: 500, 0.01: 990} {
		if got := tr.quantile(12, 0, miss); math.Abs(got-want) > 1e-6 {
			t.Errorf("crossed by %v of 1 to 999: %v, want %v", miss, got, want)
		}
	}
	if q := tr.quantile(12, 1, -0.1); q <= 999 {
		t.Errorf("when even the highest is crossed too often the bound is %v", q)
	}
}

func TestPackedValuesKeepTheirBits(t *testing.T) {
	type pair struct {
		A Floats
		B Singles
	}
	in := pair{Floats{0, math.NaN(), -1.5, math.Inf(1), 1e-300}, Singles{3, float32(math.NaN())}}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out pair
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	same := func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
	if !slices.EqualFunc(in.A, out.A, same) || len(out.B) != 2 || out.B[0] != 3 || out.B[1] == out.B[1] {
		t.Errorf("%s: %v", b, out)
	}
	for _, bad := range []string{`{"A": "AAAA"}`, `{"B": "AA=="}`, `{"A": 3}`, `{"B": "?"}`} {
		if err := json.Unmarshal([]byte(bad), &out); err == nil {
			t.Errorf("%s is read as %v", bad, out)
		}
	}
}

// level expects a constant.
type level struct{ naive }

func (*level) Name() string                  { return "level" }
func (*level) Path(int) (high, mean float64) { return 10, 10 }
func (l *level) Clone() Model                { c := *l; return &c }

func TestAModelIsUsedWhileItsBoundsAreSharperThanNaive(t *testing.T) {
	f, err := New("test/1", Config{Horizon: 6, Level: 0.9}, &level{})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	used := func(n int, load func() float64) string {
		for range n {
			if err := f.Observe(load()); err != nil {
				t.Fatal(err)
			}
		}
		next, _ := f.Forecast(6, 0.9)
		return next.Model
	}
	if m := used(600, func() float64 { return 100 + 20*r.NormFloat64() }); m != "level" {
		t.Errorf("on noise about the level: %s", m)
	}
	at := 100.0
	if m := used(2000, func() float64 { at = math.Max(0, at+2*r.NormFloat64()); return at }); m != "abstain" {
		t.Errorf("on a walk away from the level: %s", m)
	}
}
