package learntest

import (
	"math"
	"testing"

	"github.com/trimtab/trimtab/analyzer/learn"
)

// unscaled is a service that does worse under more load at equal a/l.
func unscaled(t *testing.T, make func() learn.Learner) {
	p := func(a, load float64) float64 {
		return 0.9 / (1 + math.Exp(-6*(a/load-0.8))) * (1 - 0.25*math.Log(load/10))
	}
	l := make()
	for i := range 600 {
		load := 10 + 10*math.Abs(math.Sin(float64(i)/11))
		a := load * (0.6 + 0.6*math.Abs(math.Sin(float64(i)/7)))
		if err := l.Observe(learn.Observation{Allocation: a, Load: load, Performance: p(a, load), Requests: 200}); err != nil {
			t.Fatal(err)
		}
	}
	for _, load := range []float64{10, 15, 20} {
		b, truth := l.Predict(load, load), p(load, load)
		if math.Abs(b.Mean-truth) > 0.05 || truth < b.Lower-0.03 || truth > b.Upper+0.03 {
			t.Errorf("load %v: %+v, truth %v", load, b, truth)
		}
	}
}

// persistent tests with noise that is correlated from report to report.
func persistent(t *testing.T, make func() learn.Learner) {
	changes := 0
	for seed := range uint64(5) {
		l, env := make(), NewEnvironment(Curves()[1], 700+seed)
		quality := 0.0
		for range 1000 {
			quality = 0.7*quality + 0.05*env.Rand.NormFloat64()
			o := env.Next()
			// Overloaded seconds come in a row, and hurt most on the slope.
			o.Performance = max(0, min(1, o.Performance+4*quality*o.Performance*(1-o.Performance)))
			if err := l.Observe(o); err != nil {
				t.Fatal(err)
			}
		}
		changes += l.Changes()
	}
	if changes > 5 {
		t.Errorf("%d changes found in 5,000 reports without one", changes)
	}
}
