package lab

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestRunsAreSummedUpWithTheErrorOfTheirMean(t *testing.T) {
	// 1, 2, 3, 4: variance 5/3 over 4 runs.
	s := StatOf([]float64{1, 2, 3, 4})
	if s.Mean != 2.5 || math.Abs(s.StdErr-math.Sqrt(5.0/12)) > 1e-12 {
		t.Errorf("%+v", s)
	}
	if s := StatOf([]float64{7}); s != (Stat{Mean: 7}) {
		t.Errorf("one run: %+v", s)
	}
	if s := StatOf(nil); s != (Stat{}) {
		t.Errorf("no run: %+v", s)
	}
}

func TestAQuantileIsAValueThatWasThere(t *testing.T) {
	v := []float64{30, 10, 20, 40}
	for q, want := range map[float64]float64{0: 10, 0.25: 10, 0.5: 20, 0.51: 30, 0.99: 40, 1: 40} {
		if got := Quantile(v, q); got != want {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
	if v[0] != 30 {
		t.Error("the values were sorted in place")
	}
}

func TestEveryPartHasAStreamOfItsOwn(t *testing.T) {
	seen := map[uint64]bool{}
	for a := range uint64(20) {
		for b := range uint64(20) {
			seen[rand.New(rand.NewPCG(Seed(1, a, b))).Uint64()] = true
		}
	}
	if len(seen) != 400 {
		t.Errorf("%d first numbers of 400 streams", len(seen))
	}
	a, b := Seed(1, 2)
	if c, d := Seed(1, 2); a != c || b != d {
		t.Error("the same parts give two seeds")
	}
}
