package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// bombs are messages of a kind at the limit of size whose lists and maps hold
// as many elements as fit.
func bombs() map[string]struct {
	kind trimtab.Kind
	json string
} {
	list := func(element string) string {
		n := (MaxBytes - 1024) / (len(element) + 1)
		return "[" + strings.Repeat(element+",", n-1) + element + "]"
	}
	entries := func(value string) string {
		var b strings.Builder
		b.WriteByte('{')
		for i := 0; b.Len() < MaxBytes-1024; i++ {
			fmt.Fprintf(&b, `"%x":%s,`, i, value)
		}
		return strings.TrimSuffix(b.String(), ",") + "}"
	}
	return map[string]struct {
		kind trimtab.Kind
		json string
	}{
		"actions":         {trimtab.KindPlan, `{"actions":` + list("{}") + `}`},
		"actions of 1":    {trimtab.KindPlan, `{"actions":` + list("1") + `}`},
		"actions of null": {trimtab.KindPlan, `{"actions":` + list("null") + `}`},
		"held":            {trimtab.KindPlan, `{"held":` + entries(`""`) + `}`},
		"audited":         {trimtab.KindPlan, `{"audit":{"workloads":` + list("{}") + `}}`},
		"targets":         {trimtab.KindHolding, `{"targets":` + list("{}") + `}`},
		"results":         {trimtab.KindOutcome, `{"results":` + list("{}") + `}`},
		"inputs":          {trimtab.KindEstimate, `{"inputs":` + list("{}") + `}`},
		"curves":          {trimtab.KindEstimate, `{"curves":` + entries(`{}`) + `}`},
		"latencies":       {trimtab.KindEstimate, `{"latency_s":` + entries(`1`) + `}`},
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
		if !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
			t.Errorf("%s: %d bytes became %d MiB", name, len(b), took>>20)
		}
	}
}

func TestAValueOfTheSizeThatAPoolNeedsIsNoBomb(t *testing.T) {
	plan := &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Time: noon, Lease: 10, Cause: trimtab.Cause{Kind: codes.CauseTick}, Held: map[string]trimtab.Held{}}
	for i := range 3000 {
		a := trimtab.Action{KnobID: trimtab.KnobID{Pool: "p", Host: "host", Workload: fmt.Sprintf("workload [%d], {of many}", i), Resource: "cpu"}, Expect: trimtab.Units(1.5), Set: trimtab.Units(2.25), Mode: trimtab.Act,
			Why: trimtab.Reason{Summary: `raise "it", by [0.75]`, Binding: trimtab.Binding{Kind: "step"}, Model: "bintree/1"}}
		for k := range 6 {
			a.Why.Inputs = append(a.Why.Inputs, trimtab.Input{Name: fmt.Sprint("input", k), Value: 1.5, Age: 2})
			a.Why.Alternatives = append(a.Why.Alternatives, trimtab.Alternative{Set: 1, Objective: .5, Why: "stay"})
		}
		plan.Actions = append(plan.Actions, a)
		plan.Held[fmt.Sprint("held", i)] = trimtab.Held{Code: codes.HeldOld, Text: "estimate: 30s old"}
	}
	b, err := Encode(plan, trimtab.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Decode(trimtab.KindPlan, b); err != nil {
		t.Errorf("%d bytes: %v", len(b), err)
	}
}
