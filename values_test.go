package trimtab

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// examples are one valid value of each JSON kind, with every field set.
func examples() []Value {
	p, u := 0.9, 1.5
	var h Histogram
	h.Add(0.1, 3)
	h.Add(0, 1)
	why := Reason{Summary: "s", Inputs: []Input{{Name: "load", Value: 4, Age: 1, Source: "spans"}}, Model: "bintree/1",
		Bounds: &Band{.1, .2, .3}, Utility: &p, Target: &u, Demand: &u, Binding: "capacity",
		Alternatives: []Alternative{{Set: 1, Objective: .5, Why: "stay"}}, NextCheck: noon}
	return []Value{
		&Sketch{Workload: "w", Partition: 1, From: noon, To: noon.Add(time.Second), Requests: 4, Spans: 8, Sampled: true, Latency: h,
			Threshold: .2, Under: 3, Errors: 1, Components: map[string]*Component{"c": {Spans: 4, Sojourn: h}}, Flagged: map[string]uint64{"orphan": 1}},
		&Sample{Workload: "w", Quantity: Load, Source: "prometheus", Time: noon, Window: 1, Value: 2, Requests: 3, Sigma: .1},
		&Alert{Workload: "w", Name: "Slow", Group: "g", Fingerprint: "f", Firing: true, Started: noon, Time: noon, Summary: "s"},
		&Estimate{Workload: "w", Time: noon, Curve: &Curve{Load: 3, Level: .9, Knots: []Knot{{1, Band{.1, .2, .3}}, {2, Band{.2, .3, .4}}}},
			Load: &LoadForecast{1, 2, 3, .9, "arma/1"}, Performance: &p, Latency: map[string]Seconds{"p99": .2}, Allocation: &u, Reports: 3,
			Model: "bintree/1", Hold: "h", Inputs: why.Inputs, Allocations: map[string]float64{"memory": 3},
			Curves: map[string]*Curve{"memory": {Load: 3, Level: .9, Knots: []Knot{{1, Band{.1, .2, .3}}}}}},
		&Plan{Pool: "cpu", Epoch: 1, Sequence: 2, Step: 1, Last: true, Time: noon, Objective: "njc", Value: &p, Capacity: 8, Lease: 30, Cause: "tick",
			Cut: true, Held: map[string]string{"v": "no spans"}, Capacities: map[string]float64{"cpu": 8, "memory": 64},
			Audit: &Audit{Now: Fairness{Envy: .1, Envious: 1, Slack: .2}, Target: &Fairness{}, Resources: []AuditedResource{{"cpu", 8, 2, 3, 1}},
				Workloads: []AuditedWorkload{{Workload: "w", Entitlement: 1, Share: .5, Dominant: "cpu", Satisfaction: &p, Binding: "cpu"}}},
			Actions: []Action{{Target: "w", Host: "h", Resource: "cpu", Expect: Unlimited(), Set: Units(1.5), Mode: Act, Why: why}}},
		&Outcome{Pool: "cpu", Host: "h", Epoch: 1, Sequence: 2, Step: 1, Time: noon, Refused: "r", Took: .001,
			Results: []Result{{Target: "w", Resource: "cpu", Status: Written, Before: Unlimited(), Asked: Units(1), Found: Units(1), Known: true, Reason: "r"}}},
		&Holding{Host: "h", Time: noon, Epoch: 1, Sequence: 2, LeaseLeft: 3, Paused: true,
			Targets: []Held{{Target: "w", Resource: "cpu", Knob: "cgroup v1 a", Now: Units(1), Since: noon, Baseline: Unlimited(), Min: .1, Max: 2, Problem: "p"}}},
		&Command{Pool: "cpu", Verb: Apply, Time: noon, Plan: "1-2", By: "me"},
	}
}

func TestEveryKindSurvivesTheEnvelope(t *testing.T) {
	seen := map[Kind]bool{}
	for _, v := range examples() {
		seen[v.Kind()] = true
		o := Origin{Source: "test", Incarnation: 7, Sequence: 9}
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
		if d := cmp.Diff(v, got, cmp.AllowUnexported(Histogram{}), cmp.Comparer(func(a, b Histogram) bool {
			x, _ := json.Marshal(a)
			y, _ := json.Marshal(b)
			return string(x) == string(y)
		})); d != "" {
			t.Errorf("%s: %s", v.Kind(), d)
		}
	}
	for _, info := range Kinds() {
		if info.Kind != KindSpans && info.Delivery != Local && !seen[info.Kind] {
			t.Errorf("no example of %s", info.Kind)
		}
	}
}

func TestNaNInfAndNegativeAmountsAreRefused(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
		p := bad
		values := []Value{
			&Sample{Workload: "w", Quantity: Load, Time: noon, Value: bad},
			&Sample{Workload: "w", Quantity: Load, Time: noon, Requests: bad},
			&Sketch{Workload: "w", From: noon, To: noon.Add(1), Requests: bad},
			&Estimate{Workload: "w", Time: noon, Performance: &p},
			&Estimate{Workload: "w", Time: noon, Load: &LoadForecast{Upper: bad}},
			&Estimate{Workload: "w", Time: noon, Curve: &Curve{Level: .9, Knots: []Knot{{bad, Band{}}}}},
			&Estimate{Workload: "w", Time: noon, Curve: &Curve{Level: .9, Knots: []Knot{{1, Band{0, 0, bad}}}}},
			&Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Time: noon, Lease: 1, Actions: []Action{{Target: "w", Resource: "cpu", Mode: Act, Set: Units(bad)}}},
			&Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Time: noon, Lease: Seconds(bad)},
			&Outcome{Pool: "p", Time: noon, Results: []Result{{Target: "w", Found: Units(bad)}}},
			&Holding{Host: "h", Time: noon, Targets: []Held{{Target: "w", Now: Units(bad)}}},
		}
		for _, v := range values {
			if err := v.Validate(); !errors.Is(err, ErrInvalid) {
				t.Errorf("%v in %s: %v", bad, v.Kind(), err)
			}
			if _, err := Encode(v, Origin{}); !errors.Is(err, ErrInvalid) {
				t.Errorf("%v in %s was encoded: %v", bad, v.Kind(), err)
			}
		}
	}
}

func TestAnUnknownFieldIsReadAndANewerVersionIsRefused(t *testing.T) {
	b, err := Encode(examples()[1], Origin{})
	if err != nil {
		t.Fatal(err)
	}
	var e map[string]any
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatal(err)
	}
	e["value"].(map[string]any)["later"] = 1
	newer, _ := json.Marshal(e)
	if _, _, err := Decode(KindSample, newer); err != nil {
		t.Errorf("unknown field: %v", err)
	}
	e["version"] = EnvelopeVersion + 1
	newer, _ = json.Marshal(e)
	if _, _, err := Decode(KindSample, newer); !errors.Is(err, ErrInvalid) {
		t.Errorf("newer version: %v", err)
	}
	if _, _, err := Decode(KindAlert, b); !errors.Is(err, ErrInvalid) {
		t.Errorf("other kind: %v", err)
	}
}

func TestMissingIsNotZero(t *testing.T) {
	s := &Sample{Workload: "w", Quantity: Load, Time: noon, Missing: "empty result"}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Get(); ok {
		t.Error("a missing sample has a value")
	}
	s.Value = 1
	if err := s.Validate(); !errors.Is(err, ErrInvalid) {
		t.Errorf("missing with a value: %v", err)
	}
}

func TestAPlanWithTwoActionsOnOneKnobIsRefused(t *testing.T) {
	a := Action{Target: "w", Host: "h", Resource: "cpu", Mode: Act, Set: Units(1)}
	p := &Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Time: noon, Lease: 1, Actions: []Action{a, a}}
	if err := p.Validate(); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
}

func TestUnlimitedIsAValueOfItsOwn(t *testing.T) {
	if !Units(1e300).Less(Unlimited()) || Unlimited().Less(Unlimited()) || Unlimited().Less(Units(0)) {
		t.Error("unlimited does not order above every amount")
	}
	if Unlimited().Equal(Units(0), 1e9) || !Unlimited().Equal(Unlimited(), 0) {
		t.Error("unlimited equals an amount")
	}
	for _, a := range []Amount{Unlimited(), Units(0), Units(1.25)} {
		b, _ := json.Marshal(a)
		var back Amount
		if err := json.Unmarshal(b, &back); err != nil || back != a {
			t.Errorf("%v became %s became %v (%v)", a, b, back, err)
		}
	}
}

func TestPlanIDsReadBack(t *testing.T) {
	if e, s, err := ParsePlanID(PlanID(3, 17)); e != 3 || s != 17 || err != nil {
		t.Error(e, s, err)
	}
	for _, bad := range []string{"", "3", "3-", "-3-1", "3-17x", "03-1", "a-b"} {
		if _, _, err := ParsePlanID(bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestACurveIsLinearBetweenKnotsAndFlatOutside(t *testing.T) {
	c := Curve{Level: .9, Knots: []Knot{{1, Band{0, .2, .4}}, {3, Band{.4, .6, 1}}}}
	for a, want := range map[float64]Band{0: {0, .2, .4}, 1: {0, .2, .4}, 2: {.2, .4, .7}, 3: {.4, .6, 1}, 9: {.4, .6, 1}} {
		if d := cmp.Diff(want, c.Eval(a), cmp.Comparer(func(x, y float64) bool { return math.Abs(x-y) < 1e-12 })); d != "" {
			t.Errorf("at %v: %s", a, d)
		}
	}
}

func drawHistogram(t *rapid.T) (*Histogram, []float64) {
	values := rapid.SliceOfN(rapid.Float64Range(0, 1e4), 1, 300).Draw(t, "values")
	h := new(Histogram)
	for _, v := range values {
		h.Add(v, 1)
	}
	return h, values
}

func TestHistogramQuantilesAreWithinOnePercent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, values := drawHistogram(t)
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		got, ok := h.Quantile(q)
		if !ok {
			t.Fatal("no quantile")
		}
		// Slow and obvious: some value near got has rank about q.
		below, upTo := 0, 0
		for _, v := range values {
			if v < got*(1-.0101)-1e-9 {
				below++
			}
			if v <= got*(1+.0101)+1e-9 {
				upTo++
			}
		}
		if rank := q * float64(len(values)); float64(below) > rank+1e-6 || float64(upTo) < rank-1e-6 {
			t.Fatalf("quantile %v = %v: %d below, %d up to, of %d", q, got, below, upTo, len(values))
		}
	})
}

func TestMergedHistogramsEqualTheHistogramOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, values := drawHistogram(t)
		parts := []*Histogram{new(Histogram), new(Histogram), new(Histogram)}
		for _, v := range values {
			parts[rapid.IntRange(0, 2).Draw(t, "part")].Add(v, 1)
		}
		merged := new(Histogram)
		for _, i := range rapid.Permutation([]int{0, 1, 2}).Draw(t, "order") {
			merged.Merge(parts[i])
		}
		for q := 0.0; q <= 1; q += 0.1 {
			a, _ := all.Quantile(q)
			b, _ := merged.Quantile(q)
			if a != b || all.Count() != merged.Count() {
				t.Fatalf("at %v: %v, merged %v", q, a, b)
			}
		}
	})
}

func TestHistogramFractionBelowIsMonotoneAndExactAtTheEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, _ := drawHistogram(t)
		before := 0.0
		for _, v := range []float64{0, 1e-9, 1e-3, 1, 2, 10, 500, 1e4, 1e5} {
			f, ok := h.FractionBelow(v)
			if !ok || f < before || f > 1 {
				t.Fatalf("at %v: %v after %v", v, f, before)
			}
			before = f
		}
		if math.Abs(before-1) > 1e-12 {
			t.Fatalf("below everything: %v", before)
		}
	})
}

func TestAHistogramCountsNoNonsense(t *testing.T) {
	var h Histogram
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
		h.Add(v, 1)
		h.Add(1, v)
	}
	h.Add(1, 0)
	if h.Count() != 0 {
		t.Errorf("counted %v", h.Count())
	}
}

func FuzzDecode(f *testing.F) {
	for _, v := range examples() {
		b, err := Encode(v, Origin{Source: "s", Incarnation: 1, Sequence: 2})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, info := range Kinds() {
			v, _, err := Decode(info.Kind, b)
			if err == nil {
				if _, err := Encode(v, Origin{}); err != nil {
					t.Errorf("decoded %s cannot be encoded: %v", info.Kind, err)
				}
			} else if !errors.Is(err, ErrInvalid) {
				t.Errorf("%v is not ErrInvalid", err)
			}
		}
	})
}

// What a build from before several resources wrote is read as it was meant.
func TestAPlanAndAnEstimateOfOneResourceAreStillRead(t *testing.T) {
	b := []byte(`{"kind":"plan","version":1,"value":{"pool":"p","epoch":1,"sequence":1,"step":1,"time":"2026-01-02T12:00:00Z","capacity":8,"lease_s":30,"cause":"tick"}}`)
	v, _, err := Decode(KindPlan, b)
	if err != nil {
		t.Fatal(err)
	}
	if p := v.(*Plan); p.CapacityOf("cpu") != 8 || p.CapacityOf("workers") != 8 || p.Audit != nil {
		t.Errorf("plan %+v", p)
	}
	b = []byte(`{"kind":"estimate","version":1,"value":{"workload":"w","time":"2026-01-02T12:00:00Z","model":"m","reports":1,"curve":{"load":1,"level":0.9,"knots":[{"allocation":1,"lower":0,"mean":0,"upper":1}]}}}`)
	if v, _, err = Decode(KindEstimate, b); err != nil || v.(*Estimate).Curve == nil || len(v.(*Estimate).Curves) != 0 {
		t.Errorf("estimate %+v, %v", v, err)
	}
}

func TestAResourceThatThePlanDoesNotPoolHasNoCapacity(t *testing.T) {
	p := Plan{Capacity: 8, Capacities: map[string]float64{"cpu": 8, "memory": 64}}
	if p.CapacityOf("cpu") != 8 || p.CapacityOf("memory") != 64 || p.CapacityOf("llc") != 0 {
		t.Errorf("cpu %v, memory %v, llc %v", p.CapacityOf("cpu"), p.CapacityOf("memory"), p.CapacityOf("llc"))
	}
}

func TestFurtherCurvesAndFiguresOfAnAuditAreChecked(t *testing.T) {
	bad := &Curve{Load: math.NaN(), Level: .9, Knots: []Knot{{1, Band{}}}}
	for name, v := range map[string]Value{
		"curve":      &Estimate{Workload: "w", Time: noon, Curves: map[string]*Curve{"memory": bad}},
		"no curve":   &Estimate{Workload: "w", Time: noon, Curves: map[string]*Curve{"memory": nil}},
		"allocation": &Estimate{Workload: "w", Time: noon, Allocations: map[string]float64{"memory": math.Inf(1)}},
		"capacity":   &Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Time: noon, Lease: 1, Capacities: map[string]float64{"memory": -1}},
		"audit":      &Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Time: noon, Lease: 1, Audit: &Audit{Now: Fairness{Envy: math.NaN()}}},
	} {
		if err := v.Validate(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want invalid", name, err)
		}
	}
}
