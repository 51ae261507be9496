package codec

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// This file reads what builds of version 1, and those of version 2 before its
// release, wrote: where a value was a text that programs had to parse, that is
// done here, for the last time.

// unmarshal1 is json.Unmarshal of the value of an [Envelope] of version 1.
func unmarshal1(raw []byte, v trimtab.Value) error {
	switch v := v.(type) {
	case *trimtab.Plan:
		old := plan1{Plan: v}
		if err := json.Unmarshal(raw, &old); err != nil {
			return err
		}
		old.upgrade()
	case *trimtab.Estimate:
		old := estimate1{Estimate: v}
		if err := json.Unmarshal(raw, &old); err != nil {
			return err
		}
		v.Hold = hold1(old.Hold)
	default:
		return json.Unmarshal(raw, v)
	}
	return nil
}

// The members of the structs below hide those of the same name in the embedded
// value.
type plan1 struct {
	*trimtab.Plan
	Cause    string            `json:"cause"`
	Held     map[string]string `json:"held"`
	Unmoved  map[string]string `json:"unmoved"`
	Verdicts []verdict1        `json:"verdicts"`
	Actions  []action1         `json:"actions"`
}

type verdict1 struct {
	trimtab.Verdict
	Judgement string `json:"verdict"`
}

type action1 struct {
	trimtab.Action
	Target string  `json:"target"`
	Why    reason1 `json:"why"`
}

type reason1 struct {
	trimtab.Reason
	Binding string `json:"binding"`
}

type estimate1 struct {
	*trimtab.Estimate
	Hold string `json:"hold"`
}

// upgrade moves what was read into the plan.
func (p *plan1) upgrade() {
	v := p.Plan
	v.Cause = cause1(p.Cause)
	v.Held, v.Unmoved = held1(p.Held), held1(p.Unmoved)
	for i := range p.Verdicts {
		x := p.Verdicts[i].Verdict
		kind, why, _ := strings.Cut(p.Verdicts[i].Judgement, ": ")
		x.Verdict, x.Why = codes.Judgement(kind), why
		v.Verdicts = append(v.Verdicts, x)
	}
	for i := range p.Actions {
		x := p.Actions[i].Action
		x.Why = p.Actions[i].Why.Reason
		kind, detail, _ := strings.Cut(p.Actions[i].Why.Binding, ": ")
		x.Why.Binding = trimtab.Binding{Kind: codes.BindingKind(kind), Detail: detail}
		x.Why.Summary = strings.TrimPrefix(x.Why.Summary, p.Actions[i].Target+": ")
		v.Actions = append(v.Actions, x)
	}
}

// cause1 reads a cause. The names of alerts, groups and workloads may hold any text, and are kept
// as text.
func cause1(text string) trimtab.Cause {
	c := trimtab.Cause{Text: text}
	if rest, ok := strings.CutPrefix(text, "apply "); ok {
		if plan, why, refused := strings.Cut(rest, " refused: "); refused {
			return trimtab.Cause{Kind: codes.CauseRefused, Ref: plan, Text: why}
		}
		plan, by, _ := strings.Cut(rest, " by ")
		return trimtab.Cause{Kind: codes.CauseApply, Ref: plan, By: by}
	}
	switch kind, _, more := strings.Cut(text, " "); kind {
	case "alert", "need", "command":
		c.Kind = codes.CauseKind(kind)
	case "tick", "pause", "resume", "paused":
		if c.Kind = codes.CauseKind(kind); !more {
			c.Text = ""
		}
	}
	return c
}

// held1 reads reasons, which had no kinds in version 1.
func held1(texts map[string]string) map[string]trimtab.Held {
	if texts == nil {
		return nil
	}
	out := make(map[string]trimtab.Held, len(texts))
	for name, text := range texts {
		out[name] = trimtab.Held{Code: codes.HeldOther, Text: text}
	}
	return out
}

// hold1 reads why an estimate was held: "no INPUT from SOURCE …", or any text.
func hold1(text string) *trimtab.Held {
	if text == "" {
		return nil
	}
	h := &trimtab.Held{Code: codes.HeldOther, Text: text}
	if w := strings.Fields(text); len(w) > 3 && w[0] == "no" && w[2] == "from" {
		h.Input, h.Source = w[1], w[3]
	}
	return h
}

// nameKnobs completes the names of knobs as builds from before [trimtab.KnobID]
// wrote them: pool and host once a message, and the workload as "target".
func nameKnobs(raw []byte, v trimtab.Value) {
	var old struct{ Actions, Verdicts, Results, Targets []struct{ Target string } }
	var workloads []*string
	name := func(k *trimtab.KnobID, pool, host string) {
		k.Pool, k.Host = cmp.Or(k.Pool, pool), cmp.Or(k.Host, host)
		workloads = append(workloads, &k.Workload)
	}
	switch v := v.(type) {
	case *trimtab.Plan:
		for i := range v.Actions {
			name(&v.Actions[i].KnobID, v.Pool, "")
		}
		for i := range v.Verdicts {
			workloads = append(workloads, &v.Verdicts[i].Workload)
		}
	case *trimtab.Outcome:
		for i := range v.Results {
			name(&v.Results[i].KnobID, v.Pool, v.Host)
		}
	case *trimtab.Holding:
		for i := range v.Targets {
			name(&v.Targets[i].KnobID, v.Pool, v.Host)
		}
	}
	unnamed := func(w *string) bool { return *w == "" }
	if !slices.ContainsFunc(workloads, unnamed) || json.Unmarshal(raw, &old) != nil {
		return
	}
	names := slices.Concat(old.Actions, old.Verdicts)
	switch v.(type) {
	case *trimtab.Outcome:
		names = old.Results
	case *trimtab.Holding:
		names = old.Targets
	}
	for i, w := range workloads {
		if i < len(names) && *w == "" {
			*w = names[i].Target
		}
	}
}
