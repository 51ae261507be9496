package trimtab

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab/quantity"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestNaNInfAndNegativeAmountsAreRefused(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
		p := bad
		values := []Value{
			&Sample{Workload: "w", Quantity: quantity.Load, Time: noon, Value: bad},
			&Sample{Workload: "w", Quantity: quantity.Load, Time: noon, Requests: bad},
			&Sketch{Workload: "w", From: noon, To: noon.Add(1), Requests: bad},
			&Estimate{Workload: "w", Time: noon, Performance: &p},
			&Estimate{Workload: "w", Time: noon, Load: &LoadForecast{Upper: bad}},
			&Estimate{Workload: "w", Time: noon, Curve: &Curve{Level: .9, Knots: []Knot{{bad, Band{}}}}},
			&Estimate{Workload: "w", Time: noon, Curve: &Curve{Level: .9, Knots: []Knot{{1, Band{0, 0, bad}}}}},
			&Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Time: noon, Lease: 1, Actions: []Action{{KnobID: KnobID{Pool: "p", Workload: "w", Resource: "cpu"}, Mode: Act, Set: Units(bad)}}},
			&Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Time: noon, Lease: Seconds(bad)},
			&Outcome{Pool: "p", Time: noon, Results: []Result{{KnobID: KnobID{Pool: "p", Workload: "w", Resource: "cpu"}, Found: Units(bad)}}},
			&Holding{Host: "h", Time: noon, Targets: []KnobState{{KnobID: KnobID{Host: "h", Workload: "w", Resource: "cpu"}, Now: Units(bad)}}},
		}
		for _, v := range values {
			if err := v.Validate(); !errors.Is(err, ErrInvalid) {
				t.Errorf("%v in %s: %v", bad, v.Kind(), err)
			}
		}
	}
}

func TestHoldingsOfTwoPoolsOnOneHostDoNotTakeEachOthersPlace(t *testing.T) {
	a, b, old := &Holding{Pool: "a", Host: "h"}, &Holding{Pool: "b", Host: "h"}, &Holding{Host: "h"}
	if a.Key() == b.Key() || old.Key() != "h" {
		t.Errorf("keys %q, %q and, without a pool, %q", a.Key(), b.Key(), old.Key())
	}
	if !a.Of("a") || a.Of("b") || !old.Of("a") {
		t.Error("a holding is one of its own pool, and may be one of any where it names none")
	}
}

func TestMissingIsNotZero(t *testing.T) {
	s := &Sample{Workload: "w", Quantity: quantity.Load, Time: noon, Missing: "empty result"}
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
	a := Action{KnobID: KnobID{Pool: "p", Host: "h", Workload: "w", Resource: "cpu"}, Mode: Act, Set: Units(1)}
	p := &Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Time: noon, Lease: 1, Actions: []Action{a, a}}
	if err := p.Validate(); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
}

func TestAPendingResultSaysWhatIsInForce(t *testing.T) {
	two := Units(2)
	outcome := func(r Result) *Outcome {
		r.KnobID = KnobID{Pool: "p", Host: "h", Workload: "w", Resource: "cpu"}
		return &Outcome{Pool: "p", Host: "h", Time: noon, Results: []Result{r}}
	}
	if err := outcome(Result{Status: Pending, Found: Units(3), Effective: &two, Known: true}).Validate(); err != nil {
		t.Error(err)
	}
	negative := Units(-1)
	for _, bad := range []Result{{Status: Pending, Found: Units(3), Known: true}, {Status: Pending, Effective: &two}, {Status: Written, Effective: &negative, Known: true}} {
		if err := outcome(bad).Validate(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	k := KnobState{Now: Units(3)}
	if k.InForce() != Units(3) {
		t.Error("what a knob is set to is not in force, though nothing is pending")
	}
	if k.Effective = &two; k.InForce() != two {
		t.Error("what is pending is in force")
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

func TestSharesOfTheLoadAreOfNamedInstancesOnceEachAndOfNoMoreThanAllOfIt(t *testing.T) {
	estimate := func(shares ...LoadShare) *Estimate { return &Estimate{Workload: "w", Time: noon, Shares: shares} }
	many := make([]LoadShare, MaxShares+1)
	for i := range many {
		many[i] = LoadShare{Host: "h", Instance: fmt.Sprintf("%04d", i), Share: 1e-6}
	}
	for name, good := range map[string]*Estimate{
		"none":                    estimate(),
		"one on each host":        estimate(LoadShare{"a", "", .5}, LoadShare{"b", "", .5}),
		"two on one host":         estimate(LoadShare{"a", "1", .25}, LoadShare{"a", "2", .75}),
		"a part of the load":      estimate(LoadShare{"a", "", .25}),
		"rounding above all":      estimate(LoadShare{"a", "", .5}, LoadShare{"b", "", .5 + 1e-10}),
		"as many as there may be": estimate(many[1:]...),
	} {
		if err := good.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, bad := range map[string]*Estimate{
		"no host":       estimate(LoadShare{"", "1", .5}),
		"long host":     estimate(LoadShare{strings.Repeat("h", 254), "", .5}),
		"long instance": estimate(LoadShare{"h", strings.Repeat("i", 254), .5}),
		"no share":      estimate(LoadShare{"h", "", 0}),
		"negative":      estimate(LoadShare{"h", "", -.5}),
		"not a number":  estimate(LoadShare{"h", "", math.NaN()}),
		"over all":      estimate(LoadShare{"a", "", .5}, LoadShare{"b", "", .5 + 1e-8}),
		"twice":         estimate(LoadShare{"a", "1", .25}, LoadShare{"a", "1", .25}),
		"out of order":  estimate(LoadShare{"b", "", .25}, LoadShare{"a", "", .25}),
		"too many":      estimate(many...),
	} {
		if err := bad.Validate(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want invalid", name, err)
		}
	}
}

func TestASketchNamesEachInstanceOnceAndNoMoreRequestsThanThereAre(t *testing.T) {
	long := strings.Repeat("x", 254)
	for what, c := range map[string]struct {
		of []InstanceLoad
		ok bool
	}{
		"none":              {nil, true},
		"some":              {[]InstanceLoad{{Host: "a", Requests: 1}, {Host: "a", Names: []string{"x"}, Requests: 2}, {Host: "b", Names: []string{"x", "y"}, Requests: 3}}, true},
		"too many requests": {[]InstanceLoad{{Host: "a", Requests: 11}}, false},
		"no requests":       {[]InstanceLoad{{Host: "a"}}, false},
		"no number":         {[]InstanceLoad{{Host: "a", Requests: math.NaN()}}, false},
		"infinite":          {[]InstanceLoad{{Host: "a", Requests: math.Inf(1)}}, false},
		"twice":             {[]InstanceLoad{{Host: "a", Requests: 1}, {Host: "a", Requests: 1}}, false},
		"out of order":      {[]InstanceLoad{{Host: "b", Requests: 1}, {Host: "a", Requests: 1}}, false},
		"a long host":       {[]InstanceLoad{{Host: long, Requests: 1}}, false},
		"a long name":       {[]InstanceLoad{{Host: "a", Names: []string{long}, Requests: 1}}, false},
		"many names":        {[]InstanceLoad{{Host: "a", Names: make([]string, 9), Requests: 1}}, false},
		"many":              {make([]InstanceLoad, MaxShares+1), false},
	} {
		s := &Sketch{Workload: "w", From: noon, To: noon.Add(1), Requests: 10, Instances: c.of}
		if err := s.Validate(); (err == nil) != c.ok || err != nil && (!errors.Is(err, ErrInvalid) || len(err.Error()) > 3000) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestACurveHasKnotsInOrderWithBoundsInOrderThatAreFinite(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, x := range []struct {
		what  string
		knots []Knot
		valid bool
	}{
		{"zeros", []Knot{{0, Band{}}}, true},
		{"the greatest number", []Knot{{0, Band{0, 0, math.MaxFloat64}}, {math.MaxFloat64, Band{}}}, true},
		{"none", nil, false},
		{"one place twice", []Knot{{1, Band{}}, {1, Band{}}}, false},
		{"backwards", []Knot{{2, Band{}}, {1, Band{}}}, false},
		{"less than nothing", []Knot{{-1, Band{}}}, false},
		{"lower over mean", []Knot{{1, Band{.2, .1, .3}}}, false},
		{"mean over upper", []Knot{{1, Band{.1, .4, .3}}}, false},
		{"negative bound", []Knot{{1, Band{-.1, .1, .3}}}, false},
		{"no number", []Knot{{nan, Band{}}}, false},
		{"no lower bound", []Knot{{1, Band{nan, 0, 0}}}, false},
		{"no mean", []Knot{{1, Band{0, nan, 0}}}, false},
		{"no upper bound", []Knot{{1, Band{0, 0, nan}}}, false},
		{"infinite allocation", []Knot{{inf, Band{}}}, false},
		{"infinite bound", []Knot{{1, Band{0, 0, inf}}}, false},
	} {
		err := (&Curve{Level: .9, Knots: x.knots}).Validate()
		if (err == nil) != x.valid {
			t.Errorf("%s: %v, want valid %v", x.what, err, x.valid)
		}
	}
}
