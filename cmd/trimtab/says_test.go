package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
)

// explained is a pool of two workloads and a console that hears all that is said of it.
type explained struct {
	*planner.Planner
	*view.Model
	now      time.Time
	sequence uint64
	has      map[string]float64
	known    map[string]*trimtab.Estimate
}

func newExplained(t *rapid.T, objective policy.Policy) *explained {
	x := &explained{now: time.Unix(1_700_000_000, 0), has: map[string]float64{"a": 2, "b": 2}, known: map[string]*trimtab.Estimate{}}
	cfg := planner.Config{Pool: "p", Resource: "cpu", Capacity: 4, Unit: 0.1, Round: 10 * time.Second, Urgent: 2 * time.Second, Policy: objective}
	shown := view.Config{Pool: "p", Resource: "cpu", Capacity: 4, Objective: objective.Name(), Round: 10 * time.Second}
	for _, name := range []string{"a", "b"} {
		cfg.Workloads = append(cfg.Workloads, planner.WorkloadConfig{Name: name, Mode: trimtab.Act, SLO: 0.9, Min: 0.1, Max: 4})
		shown.Workloads = append(shown.Workloads, view.Workload{Name: name, Mode: trimtab.Act, Share: true, Target: 0.9, SLO: "90% under 200ms"})
	}
	var err error
	if x.Planner, err = planner.New(cfg); err != nil {
		t.Fatal(err)
	}
	x.Model = view.New(shown)
	x.Step(x.now, &trimtab.Leader{Pool: "p", Epoch: 1})
	return x
}

// tell tells both of a value, and has a host carry out what is planned.
func (x *explained) tell(v trimtab.Value) {
	x.now = x.now.Add(time.Millisecond)
	if v != nil {
		x.Observe(v)
	}
	for queue := x.Step(x.now, v); len(queue) > 0; queue = queue[1:] {
		plan, ok := queue[0].(*trimtab.Plan)
		if !ok {
			continue
		}
		x.Observe(plan)
		o := &trimtab.Outcome{Pool: "p", Host: "h", Epoch: plan.Epoch, Sequence: plan.Sequence, Step: plan.Step, Time: x.now}
		for _, a := range plan.Actions {
			x.has[a.Workload] = a.Set.Value
			o.Results = append(o.Results, trimtab.Result{KnobID: a.KnobID, Status: trimtab.Written, Before: a.Expect, Asked: a.Set, Found: a.Set, Known: true})
		}
		x.sequence = plan.Sequence
		x.Observe(o)
		queue = append(queue, x.Step(x.now, o)...)
	}
}

func (x *explained) holding() *trimtab.Holding {
	h := &trimtab.Holding{Pool: "p", Host: "h", Time: x.now, Epoch: 1, Sequence: x.sequence, LeaseLeft: 60}
	for _, name := range []string{"a", "b"} {
		h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: name, Resource: "cpu"}, Knob: "test",
			Now: trimtab.Units(x.has[name]), Baseline: trimtab.Unlimited(), Since: x.now, Min: 0.1, Max: 4})
	}
	return h
}

// estimate is what may be known of a workload.
func (x *explained) estimate(t *rapid.T, name string) *trimtab.Estimate {
	need := float64(rapid.IntRange(1, 30).Draw(t, name+" needs")) / 10
	load := &trimtab.LoadForecast{Now: need * 50, Mean: need * 50, Upper: need * 50, Level: 0.9, Model: "test"}
	met := rapid.SampledFrom([]float64{1, 0.95, 0.9, 0.899, 0.87, 0.5, 0}).Draw(t, name+" met")
	most, cost := rapid.SampledFrom([]float64{1, 1, 0.85}).Draw(t, name+" at most"), 0.01
	e := &trimtab.Estimate{Workload: name, Time: x.now, Load: load, Performance: &met, Requests: 100, Cost: &cost, Model: "test/1", Reports: 100,
		Inputs: []trimtab.Input{{Name: "performance", Value: met}},
		Curve: &trimtab.Curve{Load: load.Upper, Level: 0.9, Knots: []trimtab.Knot{{Allocation: need * 0.5},
			{Allocation: need, Band: trimtab.Band{Lower: most * 0.88, Mean: most * 0.9, Upper: most * 0.92}},
			{Allocation: need * 1.2, Band: trimtab.Band{Lower: most * 0.97, Mean: most * 0.99, Upper: most}}}}}
	if rapid.IntRange(0, 5).Draw(t, name+" starves") == 0 {
		e.Starved = 10
	}
	switch rapid.IntRange(0, 8).Draw(t, name+" is held") {
	case 0:
		e.Hold = &trimtab.Held{Code: codes.HeldStale, Text: "no load from spans for 12s", Input: "load"}
	case 1:
		e.Curve = nil
	}
	return e
}

var explainsNeed = regexp.MustCompile(`needs (?:only )?([0-9.]+) cores`)

// Of a workload, the state that `trimtab status` has, and the lines of `trimtab explain`, say the
// same, whatever was measured of it and of another.
func TestStatusAndExplainNeverContradictEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newExplained(t, rapid.SampledFrom([]policy.Policy{fair.NJCPolicy{}, fair.ResourceFair{}, welfare.Social{}, welfare.Egalitarian{}}).Draw(t, "objective"))
		for range rapid.IntRange(1, 5).Draw(t, "rounds") {
			x.now = x.now.Add(11 * time.Second)
			x.tell(x.holding())
			for _, name := range []string{"a", "b"} {
				x.known[name] = x.estimate(t, name)
				x.tell(x.known[name])
			}
			x.tell(nil)
			x.tell(x.holding())
		}
		for _, row := range x.Status(x.now).Workloads {
			e, _ := x.Explain(row.Name, 0, x.now)
			var b bytes.Buffer
			printExplanation(&b, &e)
			for _, wrong := range contradicts(row.State, e.Decision, b.String(), x.known[row.Name]) {
				t.Errorf("%s: %s\n%s", row.Name, wrong, b.String())
			}
		}
	})
}

// contradicts are what no explanation may say at once.
func contradicts(state, decision, text string, e *trimtab.Estimate) (wrong []string) {
	newest, _, _ := strings.Cut(strings.ReplaceAll(decision, "(before that: ", "(last change: "), "(last change: ")
	says := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(newest, w) })
	}
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if !strings.Contains(text, ": "+state+"\n") {
		bad("the state is %q", state)
	}
	switch {
	case state == "ok" && says("misses its SLO", "no amount is expected", "more is not expected", "waits: ", "hold: "):
		bad("ok")
	case state == "misses its SLO" && says("everybody has what it needs", "though it meets", "not known yet"):
		bad("it misses its SLO")
	case strings.HasPrefix(state, "starved") && says("everybody", "it needs"):
		bad("it starves")
	case strings.HasPrefix(state, "held") && !says("hold: "):
		bad("it is held")
	}
	// What is said of now, and the row of an earlier change, are told apart.
	if m := explainsNeed.FindStringSubmatch(newest); m != nil {
		for _, line := range strings.Split(text, "\n") {
			if row, ok := strings.CutPrefix(strings.TrimSpace(line), "needs by its curve "); ok {
				if amount, _, _ := strings.Cut(strings.TrimSpace(row), " "); !alike(amount, m[1]) {
					bad("it needs %s, and %s", m[1], amount)
				}
			}
		}
	}
	if e.Performance != nil && *e.Performance < 0.9 && e.Hold == nil && state == "ok" {
		bad("%v is no performance that is ok", *e.Performance)
	}
	return wrong
}

func alike(a, b string) bool {
	x, _ := strconv.ParseFloat(a, 64)
	y, _ := strconv.ParseFloat(b, 64)
	return x-y < 0.06 && y-x < 0.06
}
