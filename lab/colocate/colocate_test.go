package colocate

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/lab"
	control "github.com/trimtab/trimtab/planner/colocate"
	"github.com/trimtab/trimtab/sim"
)

// played is a short run of some policies.
func played(t *testing.T, load string, periods int, policies ...string) []Summary {
	t.Helper()
	x := &Experiment{Env: BuiltIn(load), Run: policies, Periods: periods, Frame: lab.Frame{Seeds: 2, First: 1}}
	_, outcomes, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	return Summarize(outcomes)
}

func TestTheSameSeedsGiveTheSameBytes(t *testing.T) {
	var all [2][]byte
	for i := range all {
		text, err := json.Marshal(played(t, Production, 8, PolicyNames()...))
		if err != nil {
			t.Fatal(err)
		}
		all[i] = text
	}
	if !bytes.Equal(all[0], all[1]) {
		t.Error("two runs of the same seeds differ")
	}
}

func TestAloneEveryServiceHoldsItsSLO(t *testing.T) {
	s := played(t, Constant, 400, control.None)[0]
	if s.Held != 1 || s.Work != 0 || math.Abs(s.EMU-s.Load) > 1e-12 {
		t.Errorf("SLO held in %v of the periods, best-effort work %v, EMU %v of load %v", s.Held, s.Work, s.EMU, s.Load)
	}
}

func TestTheOracleMakesTheMostOfTheMachinesWithinTheSLO(t *testing.T) {
	all := played(t, Constant, 250, control.Heracles, control.Rhythm, Oracle)
	oracle := all[2]
	for _, s := range all[:2] {
		if s.EMU > oracle.EMU {
			t.Errorf("%s: EMU %.3f, over the oracle's %.3f", s.Policy, s.EMU, oracle.EMU)
		}
	}
	if oracle.Held < 0.99 || oracle.Kills != 0 {
		t.Errorf("the oracle held the SLO in %.4f of the periods and killed %v jobs", oracle.Held, oracle.Kills)
	}
}

func TestNoHostGivesMoreThanItHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := BuiltIn(Constant)
		h := newHost(e, rapid.IntRange(0, len(e.Hosts)-1).Draw(t, "host"), rapid.Uint64().Draw(t, "seed"))
		acts := []control.Act{control.Kill, control.Suspend, control.Cut, control.Resume, control.Grow, control.Start}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			j := h.jobs[rapid.IntRange(0, len(h.jobs)-1).Draw(t, "job")]
			to := control.Amounts{}
			for name, most := range h.capacity {
				to[name] = most * rapid.Float64Range(0, 1.1).Draw(t, name)
			}
			h.apply(&control.Decision{Changes: []control.Change{{Job: j.id, Act: rapid.SampledFrom(acts).Draw(t, "act"), To: to}}})
			h.run(PeriodSeconds)
			for name, most := range h.capacity {
				sum := 0.0
				for _, j := range h.jobs {
					if j.state == control.Running {
						sum += j.has[name]
					}
				}
				if sum > most*1.000001 {
					t.Fatalf("jobs have %v %s of %v", sum, name, most)
				}
			}
			if h.tally.lost < 0 || h.tally.lost > h.tally.work+1e-9 {
				t.Fatalf("%v lost of %v", h.tally.lost, h.tally.work)
			}
		}
	})
}

func TestAJobThatIsKilledBeginsAtItsCheckpoint(t *testing.T) {
	e := BuiltIn(Constant)
	h := newHost(e, 0, 1)
	j := h.jobs[0]
	j.kind = &JobType{Name: "x", Progress: Training, Length: 1e6, Checkpoint: 10, Busy: 1}
	j.length = 1e6
	h.apply(&control.Decision{Changes: []control.Change{{Job: j.id, Act: control.Start, To: control.Amounts{"cores": 20}}}})
	for range 7 { // 14 s: a checkpoint at 10
		h.run(2)
	}
	h.apply(&control.Decision{Changes: []control.Change{{Job: j.id, Act: control.Kill}}})
	if math.Abs(j.done-5) > 1e-9 || math.Abs(h.tally.lost-2) > 1e-9 {
		t.Errorf("half the machine for 14 s with a checkpoint at 10: %v left and %v lost, want 5 and 2", j.done, h.tally.lost)
	}
}

func TestMorePressureIsNeverFaster(t *testing.T) {
	e := BuiltIn(Constant)
	rapid.Check(t, func(t *rapid.T) {
		s := &e.Services[rapid.IntRange(0, len(e.Services)-1).Draw(t, "service")]
		c := &s.Components[rapid.IntRange(0, len(s.Components)-1).Draw(t, "component")]
		var to [4]Sensitivity
		for k, r := range resources() {
			to[k] = c.Sensitivity[r]
		}
		p := func(low float64, what string) pressure {
			v := func(n string) float64 { return rapid.Float64Range(low, 1).Draw(t, what+n) }
			return pressure{v("cpu"), v("llc"), v("membw"), v("network")}
		}
		a := p(0, "a")
		b := pressure{math.Max(a.cpu, p(0, "b").cpu), a.llc, a.membw, a.network}
		var less, more station
		less.slowed(c, &to, &a)
		more.slowed(c, &to, &b)
		if more.mean < less.mean {
			t.Fatalf("service time %v under %v, %v under %v", less.mean, a, more.mean, b)
		}
	})
}

func TestTheSoloRunFindsTheBottleneckOfEachService(t *testing.T) {
	e := BuiltIn(Constant)
	want := map[string]string{"e-commerce": "e-commerce-mysql", "redis": "redis-master", "solr": "solr-apache-solr", "elgg": "elgg-mysql", "elasticsearch": "elasticsearch-index"}
	for i := range e.Services {
		p, err := solo(e, i, 1)
		if err != nil {
			t.Fatal(err)
		}
		most := p.Pods[0]
		for _, pod := range p.Pods {
			if pod.Share > most.Share {
				most = pod
			}
		}
		if most.Host != want[p.Service] {
			t.Errorf("%s: %s contributes the most, want %s", p.Service, most.Host, want[p.Service])
		}
	}
}

func TestTheProductionLoadIsFiveDaysOfClarkNet(t *testing.T) {
	trace := ClarkNet()
	if len(trace) != 5*24*60 {
		t.Fatalf("%d minutes, want five days", len(trace))
	}
	l := &Load{Trace: trace}
	most := 0.0
	for p := range 10_800 {
		most = math.Max(most, l.at(p, 10_800))
	}
	if most > 1 || most < 0.97 {
		t.Errorf("the peak of six hours is %v of the maximum load", most)
	}
}

func TestAnEnvironmentIsReadAsItIsWritten(t *testing.T) {
	e := BuiltIn(Constant)
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(bytes.NewReader(text), "env.json")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, e) {
		t.Error("an environment that is written and read differs")
	}
}

func TestWhatIsWrongInAnEnvironmentIsNamed(t *testing.T) {
	written := func(change func(*Environment)) string {
		e := BuiltIn(Constant)
		change(e)
		text, err := json.MarshalIndent(e, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for text, want := range map[string]string{
		"":                  "env.json:1",
		"{\n\"hots\": []}":  `env.json:2: json: unknown field "hots"`,
		"{\n\n\"name\": 3}": "env.json:3",
		"{}{}":              "nothing after it",
		"{}":                "number of hosts",
		written(func(e *Environment) { e.Services[0].Components[1].Host = "x" }):                          `host "x" is not one of hosts`,
		written(func(e *Environment) { e.Services[0].MaxLoad = 1e8 }):                                     "of its servers are busy at max_load",
		written(func(e *Environment) { e.Jobs[0].Progress = "magic" }):                                    `progress "magic"`,
		written(func(e *Environment) { e.Load = Load{} }):                                                 "either levels or trace",
		written(func(e *Environment) { e.Load = Load{Levels: []float64{0.5, 3}} }):                        "levels[1] is 3: want 0 to 2",
		written(func(e *Environment) { e.Hosts[0].Cores = 3 }):                                            "want some left",
		written(func(e *Environment) { e.Services[0].Call.Component = "x" }):                              `component "x" is not one of the service's`,
		written(func(e *Environment) { e.Services[1].Components[0].Sensitivity["disk"] = Sensitivity{} }): "sensitivity: want only",
	} {
		_, err := Read(strings.NewReader(text), "env.json")
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestAnUnknownPolicyIsAnErrorThatNamesTheKnownOnes(t *testing.T) {
	x := &Experiment{Env: BuiltIn(Constant), Run: []string{"rhythms"}, Periods: 1, Frame: lab.Frame{Seeds: 1}}
	_, _, err := x.Play()
	var unknown *sim.UnknownError
	if !errors.As(err, &unknown) || unknown.Name != "rhythms" || !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("error %v", err)
	}
}
