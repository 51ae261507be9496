package cilantro

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab/analyzer/forecast"
	"github.com/trimtab/trimtab/analyzer/forecast/arma"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/bintree"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/welfare"
)

func TestTry(t *testing.T) {
	e := published(t)
	ar := func() forecast.Forecaster { f, _ := arma.New(arma.Config{Horizon: 12, Level: 0.9}); return f }
	bt := func() learn.Learner { f, _ := bintree.New(0.9); return f }
	for _, on := range []struct {
		name string
		o    Online
	}{{"truth", Online{}}, {"truth arma", Online{Forecaster: ar}}, {"bintree arma", Online{Learner: bt, Forecaster: ar}}} {
		for _, p := range []planner.Policy{welfare.Social{}, welfare.Egalitarian{}, fair.NJCPolicy{}} {
			w := newWorld(e, Options{}, 1)
			c, err := newSteps(w, on.o, p)
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			r, err := run(w, c, watch{})
			if err != nil {
				t.Fatal(err)
			}
			m := 0.0
			for _, v := range r.Moved {
				m += v / 180
			}
			t.Logf("%s %s %+v late %+v moved %.2f took %v", on.name, p.Name(), r.All, r.Late, m, time.Since(begin))
		}
	}
}
