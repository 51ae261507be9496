package codec

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/quantile"
	"github.com/trimtab/trimtab/quantity"
	"github.com/trimtab/trimtab/speculation"
)

// recorded1 is testdata/v1.jsonl as values: the examples, and a sketch with a
// histogram of many buckets.
func recorded1() []trimtab.Value {
	var wide quantile.Histogram
	for v, i := 1e-10, 0; v < 1e10; v, i = v*1.7, i+1 {
		wide.Add(v, 1+float64(i)/8)
	}
	earlier := examples()[:8] // kinds from before contributions
	return append(earlier, &trimtab.Sketch{Workload: "wide", From: noon, To: noon.Add(10 * time.Second), Requests: 100, Spans: 100,
		Latency: wide, Begun: []float64{90, 10}, Versions: []string{"c 1.2"},
		Exemplars: []trimtab.Exemplar{{TraceID: "0123456789abcdef0123456789abcdef", SpanID: "0123456789abcdef", Latency: 1.5}}})
}

// recorded2 is testdata/v2.jsonl: the same, and what version 1 could not say.
func recorded2() []trimtab.Value {
	p, one := .5, trimtab.Units(1)
	second := trimtab.KnobID{Pool: "cpu", Host: "h", Workload: "w", Instance: "2", Resource: "cpu"}
	holding := *examples()[6].(*trimtab.Holding)
	holding.Pool, holding.Targets[0].Pool = "cpu", "cpu"
	return append(recorded1(), &holding,
		&trimtab.Plan{Pool: "cpu", Epoch: 1, Sequence: 3, Step: 1, Last: true, Time: noon, Objective: "njc", Capacity: 8, Lease: 30,
			Cause:   trimtab.Cause{Kind: codes.CauseAlert, Ref: "Slow", Workload: "w", Text: "group g, fingerprint f"},
			Unmoved: map[string]trimtab.Held{"w": {Code: codes.StayIdle, Text: "it has 1"}},
			Actions: []trimtab.Action{{KnobID: trimtab.KnobID{Pool: "cpu", Host: "h", Workload: "w", Resource: "cpu"}, Expect: trimtab.Units(1), Set: trimtab.Units(1.5), Mode: trimtab.Act,
				Envelope: &trimtab.Envelope{Floor: 1, Target: 1.5, Ceiling: 2}, Why: trimtab.Reason{Summary: "raised", Binding: trimtab.Binding{Kind: codes.BindingStep, Detail: "at most 5 units"}}}},
			Verdicts: []trimtab.Verdict{{Workload: "w", Plan: "1-2", Verdict: codes.Unjudged, Why: "it was moved again", From: 1, To: 2, Performance: &p}}},
		&trimtab.Estimate{Workload: "w", Time: noon, Model: "none", Hold: &trimtab.Held{Code: codes.HeldStale, Text: "no load from spans", Input: "load", Source: "spans"}},
		&trimtab.Outcome{Pool: "cpu", Host: "h", Epoch: 1, Sequence: 3, Step: 1, Time: noon, Results: []trimtab.Result{{KnobID: second, Status: trimtab.Pending,
			Before: trimtab.Units(1), Asked: trimtab.Units(2), Found: trimtab.Units(2), Effective: &one, Known: true}}},
		&trimtab.Holding{Pool: "cpu", Host: "h", Time: noon, Targets: []trimtab.KnobState{{KnobID: second, Knob: "k", Now: trimtab.Units(2), Effective: &one, Since: noon, Max: 4}}},
		&trimtab.Sample{Workload: "w", Host: "h", Instance: "2", Quantity: quantity.Usage, Source: "cgroup", Time: noon, Window: 1, Value: .5},
		&trimtab.Estimate{Workload: "w", Time: noon, Model: "none", Shares: []trimtab.LoadShare{{Host: "h", Share: .25}, {Host: "h", Instance: "2", Share: .75}}},
		contributions(),
		&trimtab.Sketch{Workload: "w", From: noon, To: noon.Add(time.Second), Requests: 2, Spans: 4, Threshold: .2,
			Servpods: []trimtab.ServpodSketch{{Component: "c", Host: "h", N: 2, Sum: .5, Square: .25, Latency: 1, LatencySquare: .5, Cross: .25, Wait: .125, Off: 1, OffLatency: .5, Slack: .25, Tail: []trimtab.TailSum{{-2, 2, .25, .125}}}},
			Calls:    []trimtab.CallSketch{{Caller: "b", Component: "c", N: 2, Own: .25, Wait: .125, Tail: []trimtab.TailSum{{-2, 2, 0, .125}}}}},
		aColocation(), machine(), placements(), &speculation.Candidates{Pool: "cpu", Message: []byte{1, 2}}, jobRequest(), jobState())
}

// lines returns those of a file of testdata.
func lines(t *testing.T, name string) [][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
}

// What is stored and what other builds send must read back, and what this build
// sends must be what those read.
func TestEveryKindHasTheRecordedForm(t *testing.T) {
	file, values := lines(t, "v2.jsonl"), recorded2()
	if len(file) != len(values) {
		t.Fatalf("%d lines of %d values", len(file), len(values))
	}
	for i, v := range values {
		b, err := Encode(v, trimtab.Origin{Source: "test", Incarnation: 7, Sequence: uint64(i + 1)})
		if err != nil || !bytes.Equal(b, file[i]) {
			t.Errorf("%s: %v\n%s\nrecorded\n%s", v.Kind(), err, b, file[i])
		}
		read, o, err := Decode(v.Kind(), file[i])
		if err != nil {
			t.Fatalf("%s: %v", v.Kind(), err)
		}
		if b, err = Encode(read, o); err != nil || !bytes.Equal(b, file[i]) {
			t.Errorf("%s, read and written: %v\n%s\nrecorded\n%s", v.Kind(), err, b, file[i])
		}
	}
}

// One file was written by a build of version 1, the other by one of version 2
// before its release, when knobs had no name of one type.
func TestWhatOlderBuildsWroteIsReadAsItWasMeant(t *testing.T) {
	for name, values := range map[string][]trimtab.Value{"v1.jsonl": recorded1(), "v2-early.jsonl": recorded2()[:12]} {
		t.Run(name, func(t *testing.T) { readsAs(t, lines(t, name), values) })
		for i, line := range lines(t, name) {
			if got, want := Older(values[i].Kind(), line), name == "v1.jsonl"; got != want {
				t.Errorf("%s: older is %v, want %v: %s", name, got, want, line)
			}
		}
	}
}

func readsAs(t *testing.T, file [][]byte, values []trimtab.Value) {
	if len(file) != len(values) {
		t.Fatalf("%d lines of %d values", len(file), len(values))
	}
	for i, v := range values {
		read, o, err := Decode(v.Kind(), file[i])
		if err != nil {
			t.Fatalf("%s: %v", v.Kind(), err)
		}
		want, err := Encode(v, o)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := Encode(read, o); err != nil || !bytes.Equal(b, want) {
			t.Errorf("%s: %v\n%s\nwant\n%s", v.Kind(), err, b, want)
		}
	}
}

func TestWhatVersion1SaidInTextsIsStructure(t *testing.T) {
	plan := func(more string) *trimtab.Plan {
		v, err := DecodeValue(trimtab.KindPlan, 1, []byte(`{"pool":"p","epoch":1,"sequence":1,"step":1,"time":"2026-01-02T12:00:00Z","lease_s":30,`+more+`}`))
		if err != nil {
			t.Fatal(err)
		}
		return v.(*trimtab.Plan)
	}
	for text, want := range map[string]trimtab.Cause{
		"tick":              {Kind: codes.CauseTick},
		"paused":            {Kind: codes.CausePaused},
		"apply 3-17 by ann": {Kind: codes.CauseApply, Ref: "3-17", By: "ann"},
		"apply 3-17 refused: the state has changed": {Kind: codes.CauseRefused, Ref: "3-17", Text: "the state has changed"},
		"alert Slow of a (group g, fingerprint f)":  {Kind: codes.CauseAlert, Text: "alert Slow of a (group g, fingerprint f)"},
		"need of a":      {Kind: codes.CauseNeed, Text: "need of a"},
		"something else": {Text: "something else"},
		"":               {},
	} {
		got := plan(`"cause":"` + text + `"`).Cause
		if got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
		if got.String() != text {
			t.Errorf("%q is told as %q", text, got)
		}
	}
	p := plan(`"cause":"tick","verdicts":[{"target":"a","plan":"1-1","verdict":"unknown: it was moved again","from":1,"to":2},{"target":"a","plan":"1-1","verdict":"worse"}],
		"actions":[{"target":"a","resource":"cpu","mode":"act","why":{"summary":"a: raised","binding":"guard: no room"}}]`)
	if v := p.Verdicts; len(v) != 2 || v[0].Verdict != codes.Unjudged || v[0].Why != "it was moved again" || v[0].To != 2 || v[1].Verdict != codes.Worse || v[1].Why != "" {
		t.Errorf("verdicts %+v", v)
	}
	if w := p.Actions[0].Why; w.Binding != (trimtab.Binding{Kind: codes.BindingGuard, Detail: "no room"}) || w.Summary != "raised" {
		t.Errorf("reason %+v", w)
	}
	v, err := DecodeValue(trimtab.KindEstimate, 1, []byte(`{"workload":"a","time":"2026-01-02T12:00:00Z","model":"m","hold":"no load from spans for 9s, stale after 6s"}`))
	if h := v.(*trimtab.Estimate).Hold; err != nil || h == nil || h.Code != codes.HeldOther || h.Input != "load" || h.Source != "spans" {
		t.Errorf("hold %+v, %v", h, err)
	}
}

func TestAFrameHasTheRecordedForm(t *testing.T) {
	want, err := os.ReadFile("testdata/v1.frame")
	if err != nil {
		t.Fatal(err)
	}
	r, err := ReadFrame(want)
	if err != nil {
		t.Fatal(err)
	}
	var w FrameWriter
	r.Resources(func(_ int, packed []byte) bool {
		w.AddResource(UnpackResource(packed))
		return true
	})
	for i := range byte(3) {
		span := trimtab.Span{TraceID: [16]byte{1, 2, i}, SpanID: [8]byte{i + 1}, Parent: [8]byte{i}, Start: int64(i) * 1000, End: int64(i)*1000 + 500,
			Adjusted: 1.5, Resource: uint16(i % 2), Kind: trimtab.SpanServer, Flags: trimtab.FlagError | trimtab.FlagAdjusted}
		var got trimtab.Span
		if !r.Next(&got) || got != span {
			t.Errorf("span %d: %+v, want %+v", i, got, span)
		}
		w.Add(&span)
	}
	if got := w.Frame(3).Data; !bytes.Equal(got, want) {
		t.Errorf("%x, recorded %x", got, want)
	}
}
