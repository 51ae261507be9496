package cilantro

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/trimtab/trimtab/lab"
)

// published reads the published environment; it needs the recorded data.
func published(t testing.TB) *Environment {
	t.Helper()
	dir := os.Getenv("TRIMTAB_DATA")
	if dir == "" {
		t.Skip("TRIMTAB_DATA is not set: the published profiles and trace are not here")
	}
	e := &Environment{Name: "published", Rounds: Rounds, Capacity: Capacity, Profiles: map[string]*Profile{}}
	open := func(name string) *os.File {
		f, err := os.Open(filepath.Join(dir, "cilantro", name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	var err error
	if e.Jobs, err = ReadJobs(open("jobs_exp_env_1.csv"), "jobs"); err != nil {
		t.Fatal(err)
	}
	if e.Trace, err = ReadTrace(open("twitter_trace_1s.csv"), "trace"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"craydb0", "craydb1", "craymltrain", "craypredserv"} {
		if e.Profiles[name], err = ReadProfile(open("profile_"+name+".csv"), name); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// outcomeOf plays one policy once.
func outcomeOf(t testing.TB, e *Environment, o Options, policy string) *Run {
	t.Helper()
	x := Experiment{Env: e, Options: o, Run: []string{policy}, Frame: lab.Frame{Seeds: 1, First: 1}}
	out, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	return out[0].Runs[0]
}

func TestTheExactRowsOfThePublishedEnvironmentAreReproduced(t *testing.T) {
	e := published(t)
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 0.0006 {
			t.Errorf("%s: %.4f, want %.4f", what, got, want)
		}
	}
	fair := outcomeOf(t, e, Options{}, "resource-fair").All
	near("useful usage of resource-fair", fair.Useful, 0.7676)
	near("social welfare of resource-fair", fair.Social, 0.800)
	near("egalitarian welfare of resource-fair", fair.Egalitarian, 0.300)
	near("NJC of resource-fair", fair.NJC, 1)

	best := outcomeOf(t, e, Options{}, "oracle-social").All
	near("social optimum", best.Social, 0.941)
	near("its egalitarian welfare", best.Egalitarian, 0.734)
	near("its NJC", best.NJC, 0.947)
	near("its useful usage", best.Useful, 0.995)

	near("egalitarian bisection on the mean load", outcomeOf(t, e, Options{}, "oracle-egalitarian").All.Egalitarian, 0.830)
	if worst := outcomeOf(t, e, Options{}, "oracle-egalitarian-worst").All.Egalitarian; worst < 0.8485 {
		t.Errorf("planning for the worst window reaches %.4f, want 0.849", worst)
	}
}

func TestThePublishedBaselinesComeOutAsWasMeasured(t *testing.T) {
	e := published(t)
	// Measured by running the published policies as the paper describes them.
	for policy, want := range map[string]Score{
		"greedy-egalitarian": {Social: 0.846, Egalitarian: 0.657, NJC: 0.793, Useful: 0.973},
		"miad":               {Social: 0.836, Egalitarian: 0.397, NJC: 0.962, Useful: 0.959},
	} {
		got := outcomeOf(t, e, Options{}, policy).All
		for what, d := range map[string]float64{"social": got.Social - want.Social, "egalitarian": got.Egalitarian - want.Egalitarian,
			"njc": got.NJC - want.NJC, "useful": got.Useful - want.Useful} {
			if math.Abs(d) > 0.015 {
				t.Errorf("%s: %s is off by %.4f", policy, what, d)
			}
		}
	}
}
