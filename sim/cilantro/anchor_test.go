package cilantro

import (
	"os"
	"path/filepath"
	"testing"
)

func published(t testing.TB) *Environment {
	dir := os.Getenv("TRIMTAB_DATA")
	if dir == "" {
		t.Skip("TRIMTAB_DATA is not set: recorded data is not here")
	}
	e := &Environment{Rounds: Rounds, Capacity: Capacity, Profiles: map[string]*Profile{}}
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
	if err := e.Validate(); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestAnchors(t *testing.T) {
	e := published(t)
	w := newWorld(e, Options{}, 1)
	for name, c := range map[string]Controller{
		"fair":      fixed{shares(w)},
		"social":    &oracle{w, shares(w), social},
		"egal mean": &oracle{w, shares(w), egalitarian(func(o *oracle, i, r int) float64 { m, _ := o.loads(i, r); return m })},
		"egal max":  &oracle{w, shares(w), egalitarian(func(o *oracle, i, r int) float64 { _, m := o.loads(i, r); return m })},
		"njc":       &oracle{w, shares(w), njc},
	} {
		r, err := run(w, c, watch{})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s %+v late %+v", name, r.All, r.Late)
	}
}
