package path

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

func TestRequestsAreAdjustedForSamplingAndSpansAreNot(t *testing.T) {
	s := run(t, newPath(t, Config{Discover: true}), frame(t,
		sp{trace: 1, id: 1, service: "a", start: 0, end: 10, adjusted: 4, flags: trimtab.FlagAdjusted},
		sp{trace: 2, id: 1, service: "a", start: 0, end: 20, adjusted: 1},
	))["a"]
	if s.Requests != 5 || s.Spans != 2 || !s.Sampled || s.Latency.Count() != 5 || s.Components["a"].Spans != 5 {
		t.Errorf("got %s", text(t, s))
	}
	s = run(t, newPath(t, Config{Discover: true}), frame(t, sp{trace: 1, id: 1, service: "a", start: 0, end: 10}))["a"]
	if s.Sampled {
		t.Error("sampled without a sampling threshold")
	}
}

func TestUnderCountsWhatEndedInTimeAndWithoutError(t *testing.T) {
	c := Config{Discover: true, Workloads: []Match{{Name: "a", Attributes: map[string][]string{"service.name": {"a"}}, Threshold: 50 * ms}}}
	got := run(t, newPath(t, c), frame(t,
		sp{trace: 1, id: 1, service: "a", start: 0, end: 50},
		sp{trace: 2, id: 1, service: "a", start: 0, end: 51},
		sp{trace: 3, id: 1, service: "a", start: 0, end: 1, flags: trimtab.FlagError},
		sp{trace: 4, id: 1, service: "b", start: 1, end: 1},
	))
	if s := got["a"]; s.Under != 1 || s.Errors != 1 || s.Requests != 3 || s.Threshold != 0.05 {
		t.Errorf("got %s", text(t, s))
	}
	if s := got["b"]; s.Under != 0 || s.Threshold != 0 {
		t.Errorf("a workload without threshold: %s", text(t, s))
	}
}

func TestTheHalvesOfASharedSpanIDAreCallerAndCallee(t *testing.T) {
	p := newPath(t, Config{Discover: true})
	got := run(t, p, frame(t,
		sp{trace: 1, id: 3, parent: 2, service: "back", start: 40, end: 60, kind: trimtab.SpanClient},
		sp{trace: 1, id: 2, parent: 1, service: "back", start: 30, end: 70, kind: trimtab.SpanServer},
		sp{trace: 1, id: 2, parent: 1, service: "front", start: 20, end: 80, kind: trimtab.SpanClient},
		sp{trace: 1, id: 1, service: "front", start: 0, end: 100, kind: trimtab.SpanServer},
	))
	if n := count(p, "trimtab_path_duplicate_spans_total"); n != 0 {
		t.Errorf("%v duplicates, want 0", n)
	}
	if s := got["front"]; s.Requests != 1 || meanMS(&s.Components["front"].Sojourn) != (40+20)/2 {
		t.Errorf("front: %s", text(t, s))
	}
	if s := got["back"]; s.Requests != 1 || meanMS(&s.Components["back"].Sojourn) != (20+20)/2 {
		t.Errorf("back: %s", text(t, s))
	}
}

func TestARequestCountsInTheIntervalInWhichItEnded(t *testing.T) {
	p := newPath(t, Config{Discover: true, Every: 500 * ms})
	p.Step(at(900*ms), frame(t,
		sp{trace: 1, id: 1, service: "a", start: 0, end: 499.999},
		sp{trace: 2, id: 1, service: "a", start: 0, end: 500},
		sp{trace: 3, id: 1, service: "a", start: 100, end: 900},
		sp{trace: 3, id: 2, parent: 1, service: "a", start: 100, end: 200}, // goes with its request
	))
	out := p.Flush(at(time.Second))
	if len(out) != 2 {
		t.Fatalf("%d sketches, want 2", len(out))
	}
	one, two := out[0].(*trimtab.Sketch), out[1].(*trimtab.Sketch)
	if !one.From.Equal(at(0)) || !one.To.Equal(at(500*ms)) || one.Requests != 1 || one.Spans != 1 {
		t.Errorf("first: %s", text(t, one))
	}
	if !two.From.Equal(at(500*ms)) || !two.To.Equal(at(time.Second)) || two.Requests != 2 || two.Spans != 3 {
		t.Errorf("second: %s", text(t, two))
	}
}

func TestASketchIsGivenOutGraceAfterItsEnd(t *testing.T) {
	p := newPath(t, Config{Discover: true, Grace: 700 * ms})
	p.Step(at(0), frame(t, sp{trace: 1, id: 1, service: "a", start: 0, end: 500}))
	if out := p.Step(at(1699*ms), nil); len(out) != 0 {
		t.Errorf("given out early: %s", text(t, out))
	}
	if out := p.Step(at(1700*ms), nil); len(out) != 1 {
		t.Error("not given out")
	}
	if out := p.Step(at(time.Hour), nil); len(out) != 0 {
		t.Errorf("given out again: %s", text(t, out))
	}
}

func TestARequestOfAClosedIntervalCountsNowhereAndIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		end  float64 // ms; now is 10 s
		flag string
		from time.Duration
		late float64
	}{
		"in time":               {9800, "", 9 * time.Second, 0},
		"late":                  {5000, "late", 10 * time.Second, 1},
		"over a minute ago":     {-51_000, "late", 10 * time.Second, 1},
		"a little ahead":        {11_900, "", 11 * time.Second, 0},
		"a clock in the future": {12_400, "clock", 10 * time.Second, 0},
		"a clock off by years":  {1e11, "clock", 10 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPath(t, Config{Discover: true})
			now := 10 * time.Second
			p.Step(at(now), nil)
			p.Step(at(now), frame(t, sp{trace: 1, id: 1, service: "a", start: c.end - 10, end: c.end}))
			var out []trimtab.Value
			for range 50 {
				now += 100 * ms
				out = append(out, p.Step(at(now), nil)...)
			}
			if len(out) != 1 {
				t.Fatalf("%d sketches, want 1", len(out))
			}
			s := out[0].(*trimtab.Sketch)
			if !s.From.Equal(at(c.from)) || s.Requests != 1-c.late || s.Late != c.late {
				t.Errorf("from %v, want %v: %s", s.From, at(c.from).UTC(), text(t, s))
			}
			if want := map[bool]uint64{true: 1}[c.flag != ""]; s.Flagged[c.flag] != want || len(s.Flagged) != int(want) {
				t.Errorf("flagged %v, want %q", s.Flagged, c.flag)
			}
		})
	}
}

func TestARequestWithoutEndCountsInTheIntervalInWhichItBegan(t *testing.T) {
	p := newPath(t, Config{Discover: true})
	p.Step(at(0), frame(t, sp{trace: 1, id: 1, service: "a", start: 500, end: -float64(epoch) / 1e6}))
	out := p.Flush(at(2 * time.Second))
	if s := out[0].(*trimtab.Sketch); !s.From.Equal(at(0)) || s.Flagged["absurd"] != 1 || len(s.Flagged) != 1 {
		t.Errorf("got %s", text(t, out))
	}
}

func TestAClockAheadIsFlaggedInALongIntervalToo(t *testing.T) {
	p := newPath(t, Config{Discover: true, Every: time.Minute})
	p.Step(at(0), frame(t, sp{trace: 1, id: 1, service: "a", start: 0, end: 10}))
	p.Step(at(time.Second), frame(t, sp{trace: 2, id: 1, service: "a", start: 0, end: 30_000}))
	out := p.Flush(at(2 * time.Second))
	if s := out[0].(*trimtab.Sketch); len(out) != 1 || s.Requests != 2 || s.Flagged["clock"] != 1 {
		t.Errorf("got %s", text(t, out))
	}
}

func TestAWorkloadWithoutRequestsHasNoSketch(t *testing.T) {
	p := newPath(t, Config{Discover: true})
	got := run(t, p, frame(t, sp{trace: 1, id: 2, parent: 1, service: "a", start: 0, end: 10, kind: trimtab.SpanInternal}))
	if len(got) != 0 {
		t.Errorf("got %s", text(t, got))
	}
	if n := count(p, "trimtab_path_analysed_spans_total"); n != 1 {
		t.Errorf("analysed %v spans, want 1", n)
	}
}
