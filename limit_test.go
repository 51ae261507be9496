package trimtab

import (
	"errors"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/internal/valid"
)

func TestWhatAValueSaysIsBounded(t *testing.T) {
	long, many := strings.Repeat("x", valid.MaxText+1), make([]Input, maxInputs+1)
	step := func(change func(*Plan)) *Plan {
		p := &Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Time: noon, Lease: 1, Actions: []Action{{KnobID: KnobID{Pool: "p", Workload: "w", Resource: "cpu"}, Mode: Act}}}
		change(p)
		return p
	}
	values := map[string]Value{
		"hold":               &Estimate{Workload: "w", Time: noon, Hold: &Held{Code: codes.HeldLate, Text: long}},
		"fallback":           &Estimate{Workload: "w", Time: noon, Fallback: long},
		"model":              &Estimate{Workload: "w", Time: noon, Model: long},
		"inputs":             &Estimate{Workload: "w", Time: noon, Inputs: many},
		"source of an input": &Estimate{Workload: "w", Time: noon, Inputs: []Input{{Source: long}}},
		"allocations":        &Estimate{Workload: "w", Time: noon, Allocations: map[string]float64{long: 1}},
		"negative capacity":  step(func(p *Plan) { p.Capacities = map[string]float64{"cpu": -1} }),
		"capacities":         step(func(p *Plan) { p.Capacities = map[string]float64{long: 1} }),
		"cause":              step(func(p *Plan) { p.Cause.Text = long }),
		"held":               step(func(p *Plan) { p.Held = map[string]Held{"w": {Code: codes.HeldLate, Text: long}} }),
		"no code":            step(func(p *Plan) { p.Held = map[string]Held{"w": {Text: "why"}} }),
		"binding":            step(func(p *Plan) { p.Actions[0].Why.Binding.Detail = long }),
		"envelope":           step(func(p *Plan) { p.Actions[0].Envelope = &Envelope{Floor: 2, Target: 1, Ceiling: 3} }),
		"ceiling":            step(func(p *Plan) { p.Actions[0].Envelope = &Envelope{Target: 1} }),
		"summary":            step(func(p *Plan) { p.Actions[0].Why.Summary = long }),
		"alternatives":       step(func(p *Plan) { p.Actions[0].Why.Alternatives = make([]Alternative, maxInputs+1) }),
		"audited resources":  step(func(p *Plan) { p.Audit = &Audit{Resources: make([]AuditedResource, MaxResources+1)} }),
		"envies":             step(func(p *Plan) { p.Audit = &Audit{Workloads: []AuditedWorkload{{Envies: long}}} }),
		"reason of a result": &Outcome{Pool: "p", Time: noon, Results: []Result{{KnobID: KnobID{Pool: "p", Workload: "w", Resource: "cpu"}, Reason: long}}},
		"knob":               &Holding{Host: "h", Time: noon, Targets: []KnobState{{KnobID: KnobID{Host: "h", Workload: "w", Resource: "cpu"}, Knob: long}}},
		"asker":              &Command{Pool: "p", Time: noon, Verb: Pause, By: long},
	}
	for name, v := range values {
		if err := v.Validate(); !errors.Is(err, ErrInvalid) || len(err.Error()) > 1000 {
			t.Errorf("%s: %.200v", name, err)
		}
	}
}
