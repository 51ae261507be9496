//go:build integration

package cilantro

import (
	"testing"

	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
)

// TestTheGuardCostsAHundredthAtMost is the paper's window, one seed: each
// objective with the guard comes within .01 of itself without.
func TestTheGuardCostsAHundredthAtMost(t *testing.T) {
	e := published(t)
	x := &Experiment{Env: e, Run: []string{"social", "egalitarian", "njc"}, Frame: lab.Frame{Seeds: 1, First: 1}, Online: production(), Both: true,
		Policies: []policy.Policy{welfare.TieBreak{Objective: welfare.Social{MoveCost: 0.05}},
			welfare.TieBreak{Objective: welfare.Egalitarian{}}, fair.NJCPolicy{}}}
	out, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	for i, of := range []func(Score) float64{
		func(s Score) float64 { return s.Social }, func(s Score) float64 { return s.Egalitarian },
		func(s Score) float64 { return s.NJC },
	} {
		off, on := of(out[i].Runs[0].All), of(out[i].Guarded[0].All)
		t.Logf("%s: %.4f, %.4f with the guard", out[i].Policy, off, on)
		if on < off-0.01 {
			t.Errorf("%s: %.4f with the guard, %.4f without", out[i].Policy, on, off)
		}
	}
}
