package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/quantile"
	"github.com/trimtab/trimtab/quantity"
	"github.com/trimtab/trimtab/speculation"
	"github.com/trimtab/trimtab/topic"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// knot is one point of a curve.
func knot(allocation, lower, mean, upper float64) trimtab.Knot {
	return trimtab.Knot{Allocation: allocation, Band: trimtab.Band{Lower: lower, Mean: mean, Upper: upper}}
}

// examples are one valid value of each JSON kind, with every field set.
func examples() []trimtab.Value {
	p, u := 0.9, 1.5
	var h quantile.Histogram
	h.Add(0.1, 3)
	h.Add(0, 1)
	why := trimtab.Reason{Summary: "s", Inputs: []trimtab.Input{{Name: "load", Value: 4, Age: 1, Source: "spans"}}, Model: "bintree/1",
		Bounds: &trimtab.Band{Lower: .1, Mean: .2, Upper: .3}, Utility: &p, Target: &u, Demand: &u, Binding: trimtab.Binding{Kind: codes.BindingCapacity},
		Alternatives: []trimtab.Alternative{{Set: 1, Objective: .5, Why: "stay"}}, NextCheck: noon}
	return []trimtab.Value{
		&trimtab.Sketch{Workload: "w", Partition: 1, From: noon, To: noon.Add(time.Second), Requests: 4, Spans: 8, Sampled: true, Latency: h,
			Threshold: .2, Under: 3, Errors: 1, Components: map[string]*trimtab.Component{"c": {Spans: 4, Sojourn: h}}, Flagged: map[string]uint64{"orphan": 1}},
		&trimtab.Sample{Workload: "w", Quantity: quantity.Load, Source: "prometheus", Time: noon, Window: 1, Value: 2, Requests: 3, Sigma: .1},
		&trimtab.Alert{Workload: "w", Name: "Slow", Group: "g", Fingerprint: "f", Firing: true, Started: noon, Time: noon, Summary: "s"},
		&trimtab.Estimate{Workload: "w", Time: noon, Curve: &trimtab.Curve{Load: 3, Level: .9, Knots: []trimtab.Knot{knot(1, .1, .2, .3), knot(2, .2, .3, .4)}},
			Load: &trimtab.LoadForecast{Now: 1, Mean: 2, Upper: 3, Level: .9, Model: "arma/1"}, Performance: &p, Latency: map[string]trimtab.Seconds{"p99": .2}, Allocation: &u, Reports: 3,
			Model: "bintree/1", Hold: &trimtab.Held{Code: codes.HeldOther, Text: "h"}, Inputs: why.Inputs, Allocations: map[string]float64{"memory": 3},
			Curves: map[string]*trimtab.Curve{"memory": {Load: 3, Level: .9, Knots: []trimtab.Knot{knot(1, .1, .2, .3)}}}},
		&trimtab.Plan{Pool: "cpu", Epoch: 1, Sequence: 2, Step: 1, Last: true, Time: noon, Objective: "njc", Value: &p, Capacity: 8, Lease: 30, Cause: trimtab.Cause{Kind: codes.CauseTick},
			Cut: true, Held: map[string]trimtab.Held{"v": {Code: codes.HeldOther, Text: "no spans"}}, Capacities: map[string]float64{"cpu": 8, "memory": 64},
			Audit: &trimtab.Audit{Now: trimtab.Fairness{Envy: .1, Envious: 1, Slack: .2}, Target: &trimtab.Fairness{}, Resources: []trimtab.AuditedResource{{Resource: "cpu", Capacity: 8, Used: 2, Demanded: 3, Binds: 1}},
				Workloads: []trimtab.AuditedWorkload{{Workload: "w", Entitlement: 1, Share: .5, Dominant: "cpu", Satisfaction: &p, Binding: "cpu"}}},
			Actions: []trimtab.Action{{KnobID: trimtab.KnobID{Pool: "cpu", Host: "h", Workload: "w", Resource: "cpu"}, Expect: trimtab.Unlimited(), Set: trimtab.Units(1.5), Mode: trimtab.Act, Why: why}}},
		&trimtab.Outcome{Pool: "cpu", Host: "h", Epoch: 1, Sequence: 2, Step: 1, Time: noon, Refused: "r", Took: .001,
			Results: []trimtab.Result{{KnobID: trimtab.KnobID{Pool: "cpu", Host: "h", Workload: "w", Resource: "cpu"}, Status: trimtab.Written, Before: trimtab.Unlimited(), Asked: trimtab.Units(1), Found: trimtab.Units(1), Known: true, Reason: "r"}}},
		&trimtab.Holding{Host: "h", Time: noon, Epoch: 1, Sequence: 2, LeaseLeft: 3, Paused: true,
			Targets: []trimtab.KnobState{{KnobID: trimtab.KnobID{Host: "h", Workload: "w", Resource: "cpu"}, Knob: "cgroup v1 a", Now: trimtab.Units(1), Since: noon, Baseline: trimtab.Unlimited(), Min: .1, Max: 2, Problem: "p"}}},
		&trimtab.Command{Pool: "cpu", Verb: trimtab.Apply, Time: noon, Plan: "1-2", By: "me"},
		contributions(), aColocation(),
		machine(), placements(), &speculation.Candidates{Pool: "cpu", Message: []byte{1, 2}}, jobRequest(), jobState(),
		&trimtab.Plan{Pool: "cpu", Piece: 2, Pieces: 3, Epoch: 1, Sequence: 2, Step: 1, Time: noon, Lease: 30, Cause: trimtab.Cause{Kind: codes.CauseTick}},
		&trimtab.Plan{Pool: "cpu", Host: "h", Epoch: 1, Sequence: 2, Step: 1, Time: noon, Lease: 30, Cause: trimtab.Cause{Kind: codes.CauseTick}},
	}
}

func attempt() speculation.Attempt {
	p := .5
	return speculation.Attempt{AttemptID: speculation.AttemptID{Job: "j", Task: "t", Attempt: 1}, State: speculation.AttemptEnded, Class: speculation.OversubscribedTask, Started: noon, Ended: noon.Add(1),
		Outcome: "exited", Code: 1, Reason: "r", Progress: &p, Output: 2, LastLines: []string{"l"}, Problem: "p"}
}

func machine() *speculation.Machine {
	v, d := 1.5, .5
	return &speculation.Machine{Host: "h", Pool: "cpu", Time: noon, Life: 1, Report: 2, Epoch: 3, Sequence: 4, Load: map[string]float64{"cpu": .5}, Capacity: map[string]float64{"cpu": 8},
		Running: 1, Waiting: 2, Regular: 3, CPI: &v, MPKI: &v, Blocked: "b",
		Signals:  []speculation.ServiceSignal{{Workload: "w", Instance: "i", Signal: "cpi", Value: 2, Model: "phases", Typical: 1, Boundary: 1.5, Anomaly: true, Distance: &d, Windows: 3, FalseAlarms: 1, Judged: 2}},
		Attempts: []speculation.Attempt{attempt()}}
}

func taskSpec() speculation.TaskSpec {
	return speculation.TaskSpec{Command: []string{"/bin/true", "a"}, Env: map[string]string{"A": "b"}, Dir: "/tmp", Cores: .5, Memory: 1 << 20, Progress: "/tmp/p", Wall: 60}
}

func placements() *speculation.Placements {
	return &speculation.Placements{Pool: "cpu", Host: "h", Epoch: 1, Sequence: 2, Time: noon, Life: 3, Report: 4, Lease: 30,
		Tasks: []speculation.Placement{{AttemptID: attempt().AttemptID, Class: speculation.RegularTask, Priority: 1, Spec: taskSpec(), Kill: "k"}}}
}

func jobRequest() *speculation.JobRequest {
	return &speculation.JobRequest{Pool: "cpu", Verb: speculation.SubmitJob, Time: noon, ID: "1", By: "me", Task: "t", Host: "h",
		Job: speculation.BatchJob{Name: "j", Priority: 1, Retries: 2, QueueTimeout: 30, Tasks: []speculation.BatchTask{{Name: "t", TaskSpec: taskSpec()}}}}
}

func jobState() *speculation.JobState {
	last := attempt()
	return &speculation.JobState{Pool: "cpu", Name: "j", Time: noon, Submitted: noon, By: "me", State: speculation.StateRunning, Priority: 1, Waiting: 1, Running: 1, Done: 1, Failed: 1, Omitted: 3, Problem: "p",
		Tasks: []speculation.TaskState{{Name: "t", State: speculation.StateWaiting, Host: "h", Attempts: 1, Last: &last, Granted: "g", Next: noon, Why: "w"}}}
}

func aColocation() *colocation.Colocation {
	v, age := 0.5, trimtab.Seconds(1)
	d := colocation.HostDecision{Time: noon, Verb: "CutBE", By: "w", Why: "s", Periods: 1, Changes: []colocation.JobChange{{Job: "b/1", Act: "cut", To: map[string]float64{"cpu": .5}, Result: "written"}}, Omitted: 1}
	return &colocation.Colocation{Host: "h", Pool: "cpu/best-effort", Policy: "rhythm", Mode: trimtab.Act, Time: noon, Paused: true, Period: 2, Last: &d,
		Services: []colocation.ServiceHere{{Workload: "w", Age: &age, Stale: true, Slack: &v, Tail: &age, SLO: 1, Load: &v, Share: .5, LoadLimit: &v, LoadOrigin: "history", SlackLimit: &v, SlackOrigin: "search"}},
		Jobs: []colocation.Job{{ID: "b/1", Registered: true, Mode: trimtab.Act, State: "running", Has: map[string]float64{"cpu": .5}, Location: "g", Done: &v, Predict: "training", Predictable: true, Loss: &v,
			Useless: 1, Attained: 2, Lost: 3, ReportAge: &age, Problem: "p"}}, Omitted: 1, Running: 1, Suspended: 1, Capacity: map[string]float64{"cpu": 3}, Used: map[string]float64{"cpu": .5},
		Missing: map[string]string{"llc": "m"}, Counts: map[string]uint64{"CutBE": 1}, Kills: 1, Lost: 2, Given: 3, Reclaimed: 4, Problem: "p", Decisions: []colocation.HostDecision{d}}
}

// contributions is what builds before it cannot say.
func contributions() *colocation.Contributions {
	p := 0.9
	return &colocation.Contributions{Workload: "w", Time: noon, Window: 60, Load: 3, MaxLoad: 9, SLO: .2, Quantile: .99, Tail: &p, Requests: 180, Levels: 4,
		Servpods: []colocation.Servpod{{Component: "c", Host: "h", Sojourn: .1, Weight: 1, Correlation: .5, Variation: .1, Contribution: .05, LoadLimit: &p, SlackLimit: &p, Origin: colocation.FromHistory, SlackOrigin: colocation.Declared}},
		Growth:   &colocation.TailGrowth{Changed: true, Quantile: .99, Before: .1, After: .2, Since: noon, Parts: []colocation.GrowthPart{{Component: "c", Host: "h", Share: 1, Before: .1, After: .2}}}}
}

func TestEveryKindSurvivesTheEnvelope(t *testing.T) {
	seen := map[trimtab.Kind]bool{}
	for _, v := range examples() {
		seen[v.Kind()] = true
		o := trimtab.Origin{Source: "test", Incarnation: 7, Sequence: 9}
		b, err := Encode(v, o)
		if err != nil {
			t.Fatal(err)
		}
		got, origin, err := Decode(v.Kind(), b)
		if err != nil {
			t.Fatalf("%s: %v\n%s", v.Kind(), err, b)
		}
		if origin != o {
			t.Errorf("%s: origin %v", v.Kind(), origin)
		}
		if d := cmp.Diff(v, got, cmp.AllowUnexported(quantile.Histogram{}), cmp.Comparer(func(a, b quantile.Histogram) bool {
			x, _ := json.Marshal(a)
			y, _ := json.Marshal(b)
			return string(x) == string(y)
		})); d != "" {
			t.Errorf("%s: %s", v.Kind(), d)
		}
	}
	for _, info := range topic.All() {
		if info.Kind != trimtab.KindSpans && info.Delivery != topic.Local && !seen[info.Kind] {
			t.Errorf("no example of %s", info.Kind)
		}
	}
}

func TestAnUnknownFieldIsReadAndANewerVersionIsRefused(t *testing.T) {
	b, err := Encode(examples()[1], trimtab.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	var e map[string]any
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatal(err)
	}
	e["value"].(map[string]any)["later"] = 1
	newer, _ := json.Marshal(e)
	if _, _, err := Decode(trimtab.KindSample, newer); err != nil {
		t.Errorf("unknown field: %v", err)
	}
	e["version"] = Version + 1
	newer, _ = json.Marshal(e)
	if _, _, err := Decode(trimtab.KindSample, newer); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("newer version: %v", err)
	}
	if _, _, err := Decode(trimtab.KindAlert, b); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("other kind: %v", err)
	}
	plan := &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Time: noon, Lease: 30, Cause: trimtab.Cause{Kind: codes.CauseTick}}
	whole, err := Encode(plan, trimtab.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Decode(trimtab.KindPart, bytes.Replace(whole, []byte(`"plan"`), []byte(`"part"`), 1)); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("a whole plan that calls itself a part: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, v := range examples() {
		b, err := Encode(v, trimtab.Origin{Source: "s", Incarnation: 1, Sequence: 2})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, info := range topic.All() {
			v, _, err := Decode(info.Kind, b)
			if err == nil {
				if _, err := Encode(v, trimtab.Origin{}); err != nil {
					t.Errorf("decoded %s cannot be encoded: %v", info.Kind, err)
				}
			} else if !errors.Is(err, trimtab.ErrInvalid) {
				t.Errorf("%v is not ErrInvalid", err)
			}
		}
	})
}

// What a build from before several resources wrote is read as it was meant.
func TestAPlanAndAnEstimateOfOneResourceAreStillRead(t *testing.T) {
	b := []byte(`{"kind":"plan","version":1,"value":{"pool":"p","epoch":1,"sequence":1,"step":1,"time":"2026-01-02T12:00:00Z","capacity":8,"lease_s":30,"cause":"tick"}}`)
	v, _, err := Decode(trimtab.KindPlan, b)
	if err != nil {
		t.Fatal(err)
	}
	if p := v.(*trimtab.Plan); p.CapacityOf("cpu") != 8 || p.CapacityOf("workers") != 8 || p.Audit != nil {
		t.Errorf("plan %+v", p)
	}
	b = []byte(`{"kind":"estimate","version":1,"value":{"workload":"w","time":"2026-01-02T12:00:00Z","model":"m","reports":1,"curve":{"load":1,"level":0.9,"knots":[{"allocation":1,"lower":0,"mean":0,"upper":1}]}}}`)
	if v, _, err = Decode(trimtab.KindEstimate, b); err != nil || v.(*trimtab.Estimate).Curve == nil || len(v.(*trimtab.Estimate).Curves) != 0 {
		t.Errorf("estimate %+v, %v", v, err)
	}
}
