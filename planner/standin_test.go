package planner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/fair"
)

// declaredDemand is an estimate whose performance is missing, with a declared
// demand in its place.
func declaredDemand(name string, at time.Time, demand float64) *trimtab.Estimate {
	e := estimate(name, at, ramp(demand))
	e.Model, e.Fallback = "demand", "demand"
	e.Hold = &trimtab.Held{Code: codes.HeldAbsent, Text: "no performance from spans; the declared demand stands in, to raise it if need be"}
	return e
}

// afterRounds returns the last plan of some rounds with what a is said to need.
func afterRounds(t *testing.T, a func(at time.Time) *trimtab.Estimate) (had float64, p *trimtab.Plan) {
	t.Helper()
	now := map[string]float64{"a": 2, "b": 1.5, "c": 1.5}
	pl := started(t, pool(fair.NJCPolicy{}, trimtab.Act), now)
	for i := range 6 {
		at := t0.Add(time.Duration(i+1) * time.Second)
		pl.Step(at, a(at))
		for _, n := range []string{"b", "c"} {
			pl.Step(at, estimate(n, at, ramp(1)))
		}
		pl.Step(at, holding(at, 1, 0, now))
		for queue := pl.Step(at, nil); len(queue) > 0; {
			p = queue[0].(*trimtab.Plan)
			for _, act := range p.Actions {
				now[act.Workload] = act.Set.Value
			}
			queue = append(queue[1:], pl.Step(at, done(p, at))...)
		}
	}
	return now["a"], p
}

func TestADeclaredDemandRaisesWhoseFeedbackIsMissing(t *testing.T) {
	had, p := afterRounds(t, func(at time.Time) *trimtab.Estimate { return declaredDemand("a", at, 4) })
	if had < 3.5 {
		t.Errorf("a has %v, reaches its SLO at about 3.6 by its declared curve, and there is room", had)
	}
	if !strings.Contains(p.Held["a"].Text, "the declared demand stands in") {
		t.Errorf("the plan does not say so: %q", p.Held["a"])
	}
}

func TestADeclaredDemandLowersNobodyWhoseFeedbackIsMissing(t *testing.T) {
	if had, _ := afterRounds(t, func(at time.Time) *trimtab.Estimate { return declaredDemand("a", at, 0.5) }); had < 2 {
		t.Errorf("a had 2, was lowered to %v, and nobody saw how it does", had)
	}
}

func TestADeclaredDemandIsPlannedForInBothDirectionsWhereNoFeedbackIsDeclared(t *testing.T) {
	had, _ := afterRounds(t, func(at time.Time) *trimtab.Estimate {
		e := declaredDemand("a", at, 0.5)
		e.Hold = nil
		return e
	})
	if had > 1 {
		t.Errorf("a has %v, all that is known is that 0.5 is enough", had)
	}
}

func TestWhatStandsInDoesNotLimitAnUnlimitedKnob(t *testing.T) {
	pl := started(t, pool(fair.NJCPolicy{}, trimtab.Act), map[string]float64{"b": 1, "c": 1})
	at := t0.Add(time.Second)
	h := holding(at, 1, 0, map[string]float64{"a": 0, "b": 1, "c": 1})
	h.Targets[0].Now = trimtab.Unlimited()
	pl.Step(at, h)
	pl.Step(at, declaredDemand("a", at, 0.5))
	for _, v := range pl.Step(at, nil) {
		for _, act := range v.(*trimtab.Plan).Actions {
			if act.Workload == "a" {
				t.Errorf("a is set to %v", act.Set)
			}
		}
	}
}
