package planner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
)

func TestARecommendedPlanIsAppliedOnceAndOnlyAsItWas(t *testing.T) {
	apply := func(plan string) *trimtab.Command {
		return &trimtab.Command{Pool: "p", Verb: trimtab.Apply, Plan: plan, Time: t0, By: "ann"}
	}
	fresh := func() (*planner.Planner, *trimtab.Plan) {
		p := started(t, pool(fair.NJCPolicy{}, trimtab.Recommend), equal)
		told(p, t0, skewed)
		return p, one(t, p.Step(t0, nil))
	}
	p, plan := fresh()
	if !plan.Last || len(plan.Actions) != 3 {
		t.Fatalf("%+v", plan)
	}
	for _, a := range plan.Actions {
		if a.Mode != trimtab.Recommend {
			t.Errorf("mode %s", a.Mode)
		}
		if !strings.HasPrefix(a.Why.Summary, "would be ") {
			t.Errorf("nothing is written, and it says: %s", a.Why.Summary)
		}
	}
	p.Step(t0, done(plan, t0))
	first := one(t, p.Step(t0, apply(plan.ID())))
	if first.Last || len(first.Actions) != 1 || first.Actions[0].Mode != trimtab.Act || !strings.Contains(first.Cause.String(), "apply 1-1 by ann") || first.Sequence != 2 {
		t.Fatalf("%+v", first)
	}
	if why := first.Actions[0].Why.Summary; !strings.HasPrefix(why, "lowered ") {
		t.Errorf("it is carried out, and says: %s", why)
	}
	second := one(t, p.Step(t0, done(first, t0)))
	if len(second.Actions) != 2 || !second.Last {
		t.Fatalf("%+v", second)
	}
	again := apply(plan.ID())
	again.Time = t0.Add(time.Millisecond)
	if again := one(t, p.Step(t0, again)); len(again.Actions) > 0 || !strings.Contains(again.Cause.String(), "refused") {
		t.Errorf("applied twice: %+v", again)
	}
	p, plan = fresh()
	p.Step(t0, holding(t0.Add(time.Second), 1, 1, map[string]float64{"a": 3.5, "b": 2, "c": 2}))
	if got := one(t, p.Step(t0, apply(plan.ID()))); len(got.Actions) > 0 || got.Held["a"].Text == "" || !strings.Contains(got.Cause.String(), "refused") {
		t.Errorf("applied to another state: %+v", got)
	}
	p.Counts(func(name string, value float64, _ ...string) {
		if name == "trimtab_planner_held_workloads" && value != 0 {
			t.Errorf("a refused apply counts %v workloads as held", value)
		}
	})
	p, plan = fresh()
	barred := holding(t0.Add(time.Second), 1, 1, equal)
	barred.Targets[0].ReadOnly = "the file is read-only"
	p.Step(t0, barred)
	if got := one(t, p.Step(t0, apply(plan.ID()))); len(got.Actions) > 0 || !strings.Contains(got.Held[barred.Targets[0].Workload].Text, "read-only") ||
		!strings.Contains(got.Cause.String(), "refused: a knob may not be written") {
		t.Errorf("applied to a knob that may not be written: %+v", got)
	}
}

func TestPauseRenewsAndResumeGoesOn(t *testing.T) {
	p := started(t, pool(fair.NJCPolicy{}, trimtab.Act), equal)
	told(p, t0, skewed)
	command := func(v trimtab.Verb, s int) []trimtab.Value {
		at := t0.Add(time.Duration(s) * time.Second)
		return p.Step(at, &trimtab.Command{Pool: "p", Verb: v, Time: at})
	}
	for i, plan := range []*trimtab.Plan{one(t, command(trimtab.Pause, 0)), one(t, p.Step(t0.Add(time.Second), nil))} {
		if len(plan.Actions) > 0 || plan.Cause.Kind != codes.CausePaused || !plan.Last || plan.Held["a"].Text != "paused" {
			t.Errorf("%d: %+v", i, plan)
		}
	}
	if got := one(t, command(trimtab.Resume, 2)); len(got.Actions) == 0 {
		t.Errorf("resumed: %+v", got)
	}
	if out := command(trimtab.Pause, 1); len(out) > 0 { // late
		t.Errorf("a late pause: %v", out)
	}
}

func TestAReleasedWorkloadIsLetGo(t *testing.T) {
	p := started(t, pool(fair.NJCPolicy{}, trimtab.Act), equal)
	told(p, t0, skewed)
	p.Step(t0, &trimtab.Command{Pool: "p", Verb: trimtab.Release, Workload: "a", Time: t0})
	plan := one(t, p.Step(t0, nil))
	for _, a := range plan.Actions {
		if a.Workload == "a" {
			t.Errorf("%s", a.Why.Summary)
		}
	}
	if plan.Held["a"].Text != "released" {
		t.Errorf("held: %v", plan.Held)
	}
	p.Step(t0, &trimtab.Command{Pool: "p", Verb: trimtab.Resume, Time: t0})
	if plan := one(t, p.Step(t0.Add(time.Second), nil)); plan.Held["a"].Text == "released" {
		t.Errorf("a resume takes back what was released: %v", plan.Held)
	}
}

func TestAnAlertStartsARoundOncePerGapAndGroup(t *testing.T) {
	cfg := pool(fair.NJCPolicy{}, trimtab.Recommend)
	cfg.Round = time.Minute
	p := started(t, cfg, equal)
	p.Step(t0, nil)
	for i, c := range []struct {
		s        int
		workload string
		group    string
		firing   bool
		want     int
	}{{1, "a", "g", true, 1}, {2, "a", "g", true, 0}, {3, "b", "g2", true, 1}, {4, "c", "g3", false, 0}, {5, "x", "g4", true, 0}, {11, "a", "g", true, 1}} {
		now := t0.Add(time.Duration(c.s) * time.Second)
		fingerprint := fmt.Sprintf("f%02d", i/5) // the last is another alert: one that is repeated starts no round
		out := p.Step(now, &trimtab.Alert{Workload: c.workload, Name: "Slow", Group: c.group, Fingerprint: fingerprint, Firing: c.firing, Time: now})
		if len(out) != c.want {
			t.Errorf("alert %d: %d plans", i, len(out))
		} else if c.want == 1 && !strings.Contains(one(t, out).Cause.String(), "alert Slow of "+c.workload+" (group "+c.group+", fingerprint "+fingerprint+")") {
			t.Errorf("cause %q", one(t, out).Cause)
		}
	}
}

// What the bus kept while nobody was there, or brings again after a fault,
// must not act on a state that nobody had before them. The lease is 3 s.
func TestWhatWasAskedLongAgoStartsNothing(t *testing.T) {
	old := t0.Add(-time.Hour)
	for name, in := range map[string]trimtab.Value{
		"round": &trimtab.Command{Pool: "p", Verb: trimtab.Round, Time: old},
		"alert": &trimtab.Alert{Workload: "a", Name: "Slow", Group: "g", Firing: true, Time: old},
	} {
		p := started(t, pool(fair.NJCPolicy{}, trimtab.Act), equal)
		told(p, t0, skewed)
		if out := p.Step(t0, in); len(out) > 0 {
			t.Errorf("%s of an hour ago: %v", name, out[0])
		}
	}
}

func TestAnOldApplyIsRefusedAndItsRecommendationWaits(t *testing.T) {
	p := started(t, pool(fair.NJCPolicy{}, trimtab.Recommend), equal)
	told(p, t0, skewed)
	plan := one(t, p.Step(t0, nil))
	p.Step(t0, done(plan, t0))
	apply := &trimtab.Command{Pool: "p", Verb: trimtab.Apply, Plan: plan.ID(), Time: t0.Add(-time.Hour)}
	if got := one(t, p.Step(t0, apply)); len(got.Actions) > 0 || !strings.Contains(got.Cause.String(), "refused: asked for 1h0m0s ago") {
		t.Errorf("%+v", got)
	}
	apply.Time = t0
	if got := one(t, p.Step(t0, apply)); len(got.Actions) == 0 {
		t.Errorf("asked for now: %+v", got)
	}
}

func TestAnOldPauseHoldsUntilItIsEnded(t *testing.T) {
	p := started(t, pool(fair.NJCPolicy{}, trimtab.Act), equal)
	told(p, t0, skewed)
	p.Step(t0, &trimtab.Command{Pool: "p", Verb: trimtab.Pause, Time: t0.Add(-time.Hour)})
	if got := one(t, p.Step(t0.Add(time.Second), nil)); len(got.Actions) > 0 || got.Cause.Kind != codes.CausePaused {
		t.Errorf("%+v", got)
	}
}
