//go:build integration

package cilantro

import (
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
)

// TestNobodyIsMovedWhileTheLoadIsConstant runs 20 jobs on 1000 units, at
// the default cost of moving: from round 60 on at most 0.5% of the units move a round,
// under a load of exactly 40 requests a second and under one that is 40 on
// average, as requests that come by chance are.
func TestNobodyIsMovedWhileTheLoadIsConstant(t *testing.T) {
	const rounds, learnt = 90, 60
	chance := distuv.Poisson{Lambda: 40, Src: rand.New(rand.NewPCG(7, 7))}
	for name, load := range map[string]func() float64{"exactly": func() float64 { return 40 }, "on average": chance.Rand} {
		e := BuiltIn(rounds * Windows * WindowSeconds)
		e.Rounds = rounds
		for i := range e.Trace {
			e.Trace[i] = load()
		}
		policies := []policy.Policy{welfare.TieBreak{Objective: welfare.Social{MoveCost: 0.05}},
			welfare.TieBreak{Objective: welfare.Egalitarian{}}, fair.NJCPolicy{}, welfare.TieBreak{Objective: welfare.Nash{MoveCost: 0.05}}}
		x := &Experiment{Env: e, Frame: lab.Frame{Seeds: 1, First: 1}, Online: production(), Policies: policies}
		for _, p := range policies {
			x.Run = append(x.Run, p.Name())
		}
		out, err := x.Play()
		if err != nil {
			t.Fatal(err)
		}
		for i := range out {
			early, late := 0.0, 0.0
			for r, m := range out[i].Runs[0].Moved {
				if r < learnt {
					early += m / learnt
				} else {
					late += m / (rounds - learnt)
				}
			}
			t.Logf("40 %s, %s: %.2f units a round before, %.2f from round %d on", name, out[i].Policy, early, late, learnt)
			if late > 0.005*Capacity {
				t.Errorf("40 %s: %s moves %.2f units a round", name, out[i].Policy, late)
			}
			if early == 0 {
				t.Errorf("40 %s: %s never moved: nothing was learnt", name, out[i].Policy)
			}
		}
	}
}
