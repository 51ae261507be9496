package trimtab

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// bombs are messages of a kind at the limit of size whose lists and maps hold
// as many elements as fit.
func bombs() map[string]struct {
	kind Kind
	json string
} {
	list := func(element string) string {
		n := (MaxMessageBytes - 1024) / (len(element) + 1)
		return "[" + strings.Repeat(element+",", n-1) + element + "]"
	}
	entries := func(value string) string {
		var b strings.Builder
		b.WriteByte('{')
		for i := 0; b.Len() < MaxMessageBytes-1024; i++ {
			fmt.Fprintf(&b, `"%x":%s,`, i, value)
		}
		return strings.TrimSuffix(b.String(), ",") + "}"
	}
	return map[string]struct {
		kind Kind
		json string
	}{
		"actions":         {KindPlan, `{"actions":` + list("{}") + `}`},
		"actions of 1":    {KindPlan, `{"actions":` + list("1") + `}`},
		"actions of null": {KindPlan, `{"actions":` + list("null") + `}`},
		"held":            {KindPlan, `{"held":` + entries(`""`) + `}`},
		"audited":         {KindPlan, `{"audit":{"workloads":` + list("{}") + `}}`},
		"targets":         {KindHolding, `{"targets":` + list("{}") + `}`},
		"results":         {KindOutcome, `{"results":` + list("{}") + `}`},
		"inputs":          {KindEstimate, `{"inputs":` + list("{}") + `}`},
		"curves":          {KindEstimate, `{"curves":` + entries(`{}`) + `}`},
		"latencies":       {KindEstimate, `{"latency_s":` + entries(`1`) + `}`},
	}
}

func TestNoMessageCostsItsReader64MiB(t *testing.T) {
	for name, bomb := range bombs() {
		b, err := json.Marshal(Envelope{Kind: bomb.kind, Version: 1, Value: json.RawMessage(bomb.json)})
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err = Decode(bomb.kind, b)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
			t.Errorf("%s: %d bytes became %d MiB", name, len(b), took>>20)
		}
	}
}

func TestAValueOfTheSizeThatAPoolNeedsIsNoBomb(t *testing.T) {
	plan := &Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Time: noon, Lease: 10, Cause: "tick", Held: map[string]string{}}
	for i := range 3000 {
		a := Action{Target: fmt.Sprintf("workload [%d], {of many}", i), Host: "host", Resource: "cpu", Expect: Units(1.5), Set: Units(2.25), Mode: Act,
			Why: Reason{Summary: `raise "it", by [0.75]`, Binding: "step", Model: "bintree/1"}}
		for k := range 6 {
			a.Why.Inputs = append(a.Why.Inputs, Input{Name: fmt.Sprint("input", k), Value: 1.5, Age: 2})
			a.Why.Alternatives = append(a.Why.Alternatives, Alternative{Set: 1, Objective: .5, Why: "stay"})
		}
		plan.Actions = append(plan.Actions, a)
		plan.Held[fmt.Sprint("held", i)] = "estimate: 30s old"
	}
	b, err := Encode(plan, Origin{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Decode(KindPlan, b); err != nil {
		t.Errorf("%d bytes: %v", len(b), err)
	}
}

func TestWhatAValueSaysIsBounded(t *testing.T) {
	long, many := strings.Repeat("x", MaxText+1), make([]Input, MaxInputs+1)
	step := func(change func(*Plan)) *Plan {
		p := &Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Time: noon, Lease: 1, Actions: []Action{{Target: "w", Resource: "cpu", Mode: Act}}}
		change(p)
		return p
	}
	values := map[string]Value{
		"hold":               &Estimate{Workload: "w", Time: noon, Hold: long},
		"fallback":           &Estimate{Workload: "w", Time: noon, Fallback: long},
		"model":              &Estimate{Workload: "w", Time: noon, Model: long},
		"inputs":             &Estimate{Workload: "w", Time: noon, Inputs: many},
		"source of an input": &Estimate{Workload: "w", Time: noon, Inputs: []Input{{Source: long}}},
		"allocations":        &Estimate{Workload: "w", Time: noon, Allocations: map[string]float64{long: 1}},
		"negative capacity":  step(func(p *Plan) { p.Capacities = map[string]float64{"cpu": -1} }),
		"capacities":         step(func(p *Plan) { p.Capacities = map[string]float64{long: 1} }),
		"cause":              step(func(p *Plan) { p.Cause = long }),
		"held":               step(func(p *Plan) { p.Held = map[string]string{"w": long} }),
		"summary":            step(func(p *Plan) { p.Actions[0].Why.Summary = long }),
		"alternatives":       step(func(p *Plan) { p.Actions[0].Why.Alternatives = make([]Alternative, MaxInputs+1) }),
		"audited resources":  step(func(p *Plan) { p.Audit = &Audit{Resources: make([]AuditedResource, MaxResources+1)} }),
		"envies":             step(func(p *Plan) { p.Audit = &Audit{Workloads: []AuditedWorkload{{Envies: long}}} }),
		"reason of a result": &Outcome{Pool: "p", Time: noon, Results: []Result{{Target: "w", Reason: long}}},
		"knob":               &Holding{Host: "h", Time: noon, Targets: []Held{{Target: "w", Knob: long}}},
		"asker":              &Command{Pool: "p", Time: noon, Verb: Pause, By: long},
	}
	for name, v := range values {
		if err := v.Validate(); !errors.Is(err, ErrInvalid) || len(err.Error()) > 1000 {
			t.Errorf("%s: %.200v", name, err)
		}
	}
}
