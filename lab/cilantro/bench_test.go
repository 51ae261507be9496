package cilantro

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab/analyzer/forecast"
	"github.com/trimtab/trimtab/analyzer/forecast/auto"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
	"github.com/trimtab/trimtab/planner/welfare"
)

// production returns what learns and forecasts by default.
func production() Online {
	return Online{
		Learner: func(*Profile) learn.Learner { l, _ := gp.New(0.9); return l },
		Forecaster: func() forecast.Forecaster {
			f, _ := auto.New("auto", auto.Config{Horizon: Windows, Level: 0.9, Step: WindowSeconds * time.Second})
			return f
		},
	}
}

// BenchmarkRun is a whole run of a policy that learns: 180 rounds of 20 jobs.
func BenchmarkRun(b *testing.B) {
	e := BuiltIn(Rounds * Windows * WindowSeconds)
	for b.Loop() {
		w := newWorld(e, Options{}, 1)
		c, err := newSteps(w, production(), welfare.Social{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := run(w, c, watch{}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
