package planner_test

import (
	"math"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/fair"
)

func TestAClockThatWasAheadHoldsOnlyUntilTheNextEstimate(t *testing.T) {
	p := started(t, pool(fair.NJCPolicy{}, trimtab.Act), equal)
	for name, full := range skewed {
		e := estimate(name, t0.AddDate(10, 0, 0), ramp(full))
		if err := e.Validate(); err != nil {
			t.Fatal(err)
		}
		p.Step(t0, e)
	}
	if plan := one(t, p.Step(t0, nil)); len(plan.Actions) > 0 {
		t.Errorf("acted on the future: %+v", plan)
	}
	at := t0.Add(2 * time.Second)
	told(p, at, skewed)
	if plan := one(t, p.Step(at, nil)); len(plan.Actions) == 0 {
		t.Errorf("still held: %v", plan.Held)
	}
}

func TestAPauseByAClockThatWasAheadCanBeEnded(t *testing.T) {
	p := started(t, pool(fair.NJCPolicy{}, trimtab.Act), equal)
	told(p, t0, skewed)
	if plan := one(t, p.Step(t0, &trimtab.Command{Pool: "p", Verb: trimtab.Pause, Time: t0.AddDate(10, 0, 0)})); plan.Cause.Kind != codes.CausePaused {
		t.Fatalf("%+v", plan)
	}
	at := t0.Add(time.Second)
	if plan := one(t, p.Step(at, &trimtab.Command{Pool: "p", Verb: trimtab.Resume, Time: at})); len(plan.Actions) == 0 {
		t.Errorf("still paused: %+v", plan)
	}
}

// One host must not keep the pool from getting plans, whatever it says it has.
func TestAHostThatHoldsMoreThanThereIsDoesNotSilenceThePlanner(t *testing.T) {
	for _, v := range []float64{math.MaxFloat64, 1e300, 1e20} {
		p := started(t, pool(fair.NJCPolicy{}, trimtab.Act), map[string]float64{"a": 2, "b": v, "c": v})
		told(p, t0, skewed)
		one(t, p.Step(t0, nil))
		one(t, p.Step(t0.Add(5*time.Second), nil))
	}
}
