package reclaim

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestEquation1LossIsServiceWithPreemptionLessThatWithout(t *testing.T) {
	for _, c := range []struct{ tp, rp, to, ro, want float64 }{
		{150, 2, 100, 4, -100}, // half the speed would have been 200 s
		{200, 2, 100, 4, 0},
		{250, 2, 100, 4, 100},
	} {
		if got, ok := Loss(c.tp, c.rp, c.to, c.ro); !ok || got != c.want {
			t.Errorf("%+v: %v %v", c, got, ok)
		}
	}
}

func TestTheMakespanOfADataParallelJob(t *testing.T) {
	// 40% took 80 s: 120 s to go with all, 240 s with half.
	for p, want := range map[float64]float64{1: 200, 0.5: 320} {
		if got, ok := DataParallel(80, 0.4, p); !ok || math.Abs(got-want) > 1e-9 {
			t.Errorf("p = %v: %v %v, want %v", p, got, ok, want)
		}
	}
}

func TestTheMakespanOfATrainingJob(t *testing.T) {
	if got, ok := Training(60, 100, 4); !ok || got != 85 {
		t.Errorf("%v %v", got, ok)
	}
}

func TestEquation7UselessIsWhatWasDoneSinceTheCheckpoint(t *testing.T) {
	for _, c := range []struct {
		slowed, replica bool
		want            float64
	}{{want: 120}, {slowed: true}, {replica: true}} {
		if got, ok := Useless(30, 4, c.slowed, c.replica); !ok || got != c.want {
			t.Errorf("%+v: %v %v", c, got, ok)
		}
	}
}

func TestWhatCannotBePredictedIsUnpredictable(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, predict := range map[string]func() (float64, bool){
		"nothing done":           func() (float64, bool) { return DataParallel(10, 0, 1) },
		"more than all done":     func() (float64, bool) { return DataParallel(10, 1.1, 1) },
		"progress backwards":     func() (float64, bool) { return DataParallel(10, -0.1, 1) },
		"done not known":         func() (float64, bool) { return DataParallel(10, nan, 1) },
		"nothing to go on with":  func() (float64, bool) { return DataParallel(10, 0.5, 0) },
		"no step a second":       func() (float64, bool) { return Training(10, 5, 0) },
		"steps backwards":        func() (float64, bool) { return Training(10, 5, -1) },
		"more steps than all":    func() (float64, bool) { return Training(10, -5, 1) },
		"rate not known":         func() (float64, bool) { return Training(10, 5, nan) },
		"no end of steps":        func() (float64, bool) { return Training(10, inf, 1) },
		"loss of no time":        func() (float64, bool) { return Loss(nan, 1, 1, 1) },
		"loss of what is no use": func() (float64, bool) { return Loss(1, -1, 1, 1) },
		"checkpoint of tomorrow": func() (float64, bool) { return Useless(-1, 1, false, false) },
	} {
		if got, ok := predict(); ok || got != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAPredictionIsANumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		any := rapid.Float64()
		a, b, c, d := any.Draw(t, "a"), any.Draw(t, "b"), any.Draw(t, "c"), any.Draw(t, "d")
		for _, predict := range []func() (float64, bool){
			func() (float64, bool) { return Loss(a, b, c, d) },
			func() (float64, bool) { return DataParallel(a, b, c) },
			func() (float64, bool) { return Training(a, b, c) },
			func() (float64, bool) { return Useless(a, b, false, false) },
		} {
			if v, _ := predict(); math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("%v, %v, %v, %v: %v", a, b, c, d, v)
			}
		}
	})
}
