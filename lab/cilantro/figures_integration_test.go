//go:build integration

package cilantro

import (
	"testing"

	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
)

// TestThePoliciesThatLearnReachTheirFigures is the table of docs/papers.md,
// with a third of the rounds and one seed, against loose bounds: learning is
// most of so short a run.
func TestThePoliciesThatLearnReachTheirFigures(t *testing.T) {
	e := published(t)
	e.Rounds = 60
	x := &Experiment{Env: e, Run: []string{"social", "egalitarian", "njc", "oracle-social"}, Frame: lab.Frame{Seeds: 1, First: 1}, Online: production(),
		Policies: []policy.Policy{welfare.Social{}, welfare.Egalitarian{}, fair.NJCPolicy{}}}
	out, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]Summary{}
	for i := range out {
		of[out[i].Policy] = Summarize(e, &out[i])
		t.Logf("%s: %+v, last 20 rounds %+v, moved %.1f", out[i].Policy, of[out[i].Policy].Score, of[out[i].Policy].Last, of[out[i].Policy].Moved)
	}
	for _, c := range []struct {
		policy, figure string
		got, least     float64
	}{
		{"social", "social welfare of the last rounds", of["social"].Last.Social, of["oracle-social"].Last.Social - 0.02},
		{"egalitarian", "egalitarian welfare of the last rounds", of["egalitarian"].Last.Egalitarian, 0.81},
		{"njc", "NJC fairness", of["njc"].NJC, 0.985},
		{"njc", "useful usage of the last rounds", of["njc"].Last.Useful, 0.97},
	} {
		if c.got < c.least {
			t.Errorf("%s: %s is %.4f, want at least %.4f", c.policy, c.figure, c.got, c.least)
		}
	}
	for policy, s := range of {
		covered, n := 0.0, 0.0
		for _, share := range s.Coverage {
			covered, n = covered+share, n+1
		}
		if n > 0 && covered/n < 0.85 {
			t.Errorf("%s: the band holds %.3f of the true curves", policy, covered/n)
		}
	}
}

// TestWhatIsRealIsWithstood runs the options together: no error, no collapse.
func TestWhatIsRealIsWithstood(t *testing.T) {
	e := published(t)
	e.Rounds = 40
	x := &Experiment{Env: e, Run: []string{"njc", "resource-fair"}, Frame: lab.Frame{Seeds: 1, First: 1}, Online: production(), Policies: []policy.Policy{fair.NJCPolicy{}},
		Options: Options{Queues: true, Startup: 10e9, Interference: 0.1, Noise: 0.1, Drift: Drift{[]string{"db1j4"}, 0.7},
			Lies: map[string]float64{"db1j6": 2}, Arrive: map[string]float64{"prsj1": 5.5}, Leave: map[string]float64{"mltj1": 20.5}}}
	out, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	learnt, fair := Summarize(e, &out[0]), Summarize(e, &out[1])
	if learnt.Last.Social < fair.Last.Social {
		t.Errorf("social welfare %.3f, %.3f without feedback", learnt.Last.Social, fair.Last.Social)
	}
}
