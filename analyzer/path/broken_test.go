package path

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/trial"
)

func TestBrokenSpansAreFlaggedByKindAndChangeNoOtherTrace(t *testing.T) {
	good := []sp{
		{trace: 99, id: 1, service: "shop", start: 100, end: 200, kind: trimtab.SpanServer},
		{trace: 99, id: 2, parent: 1, service: "shop", start: 120, end: 150, kind: trimtab.SpanClient},
	}
	root := sp{trace: 1, id: 1, service: "bad", start: 100, end: 200, kind: trimtab.SpanServer}
	day := 24 * 3600 * 1e3
	for name, c := range map[string]struct {
		spans []sp
		want  map[string]uint64
	}{
		"none":                {[]sp{root}, nil},
		"negative":            {[]sp{root, {trace: 1, id: 2, parent: 1, start: 150, end: 140}}, map[string]uint64{"negative": 1}},
		"before 1970":         {[]sp{root, {trace: 1, id: 2, parent: 1, start: -float64(epoch/1e6) - 5, end: 140}}, map[string]uint64{"absurd": 1}},
		"over a day":          {[]sp{root, {trace: 1, id: 2, parent: 1, start: 140 - day - 1, end: 140}}, map[string]uint64{"absurd": 1}},
		"all of time":         {[]sp{root, {trace: 1, id: 2, parent: 1, start: -1e15, end: 1e15}}, map[string]uint64{"absurd": 1}},
		"self-parent":         {[]sp{root, {trace: 1, id: 2, parent: 2, start: 120, end: 140}}, map[string]uint64{"self_parent": 1}},
		"cycle":               {[]sp{root, {trace: 1, id: 2, parent: 3, start: 120, end: 140}, {trace: 1, id: 3, parent: 2, start: 120, end: 140}, {trace: 1, id: 4, parent: 3, start: 120, end: 140}}, map[string]uint64{"cycle": 2}},
		"orphan":              {[]sp{root, {trace: 1, id: 2, parent: 3, start: 120, end: 140}}, map[string]uint64{"orphan": 1}},
		"outside":             {[]sp{root, {trace: 1, id: 2, parent: 1, start: 180, end: 240}}, map[string]uint64{"outside": 1}},
		"wholly outside":      {[]sp{root, {trace: 1, id: 2, parent: 1, start: 280, end: 340}}, map[string]uint64{"outside": 1}},
		"child of an unknown": {[]sp{root, {trace: 1, id: 2, parent: 1, start: 150, end: 140}, {trace: 1, id: 3, parent: 2, start: 145, end: 150}}, map[string]uint64{"negative": 1}},
		"zero ids":            {[]sp{root, {trace: 1, id: 0, parent: 1, start: 120, end: 140}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPath(t, Config{Discover: true})
			for i := range c.spans {
				c.spans[i].service = "bad"
			}
			want := run(t, newPath(t, Config{Discover: true}), frame(t, good...))["shop"]
			got := run(t, p, frame(t, append(c.spans, good...)...))
			if diff := cmp.Diff(c.want, got["bad"].Flagged); diff != "" {
				t.Errorf("flagged (-want +got):\n%s", diff)
			}
			total := 0.0
			for kind, n := range c.want {
				total += float64(n)
				if g := count(p, "trimtab_path_flagged_spans_total", kind); g != float64(n) {
					t.Errorf("counted %v %s, want %d", g, kind, n)
				}
			}
			if g := count(p, "trimtab_path_flagged_spans_total"); g != total {
				t.Errorf("counted %v faults, want %v", g, total)
			}
			if text(t, got["shop"]) != text(t, want) {
				t.Errorf("another trace changed:\n%s\n%s", text(t, got["shop"]), text(t, want))
			}
		})
	}
}

func TestAChildThatOutlivesItsParentIsClipped(t *testing.T) {
	got := run(t, newPath(t, Config{Discover: true}), frame(t,
		sp{trace: 1, id: 1, service: "a", start: 100, end: 200},
		sp{trace: 1, id: 2, parent: 1, service: "b", start: 180, end: 500, kind: trimtab.SpanServer}))
	if m := meanMS(&got["a"].Components["a"].Sojourn); m != 80 {
		t.Errorf("sojourn %v ms, want 80", m)
	}
}

func TestACalleeWithAnotherClockIsTakenFromItsCaller(t *testing.T) {
	got := run(t, newPath(t, Config{Discover: true}), frame(t,
		sp{trace: 1, id: 1, service: "a@1", start: 100, end: 200, kind: trimtab.SpanClient},
		sp{trace: 1, id: 2, parent: 1, service: "b@2", start: 700, end: 760, kind: trimtab.SpanServer}))
	if m := meanMS(&got["a"].Components["a"].Sojourn); m != 40 {
		t.Errorf("sojourn %v ms, want 40", m)
	}
	if got["b"].Flagged["skewed"] != 1 {
		t.Errorf("flagged %v, want 1 skewed", got["b"].Flagged)
	}
}

func TestARequestOfUnknownDurationIsLoadButNotLatency(t *testing.T) {
	c := Config{Workloads: []Match{{Name: "a", Attributes: map[string][]string{"service.name": {"a"}}, Threshold: time.Second}}}
	s := run(t, newPath(t, c), frame(t,
		sp{trace: 1, id: 1, service: "a", start: 200, end: 100},
		sp{trace: 2, id: 1, service: "a", start: 100, end: 150},
		sp{trace: 3, id: 1, service: "a", start: 100 - 25*3600e3, end: 100}))["a"]
	if s.Requests != 3 || s.Latency.Count() != 1 || s.Under != 1 || s.Components["a"].Spans != 3 || s.Components["a"].Sojourn.Count() != 1 {
		t.Errorf("got %s", text(t, s))
	}
}

// hostile returns n spans of trace 1 and what is to be flagged.
func hostile(shape string, n int) (spans []sp, flag string) {
	// colliding ids all fall into one slot of a table with their hash
	const inverse = 0xF1DE83E19937733D
	for i := range n {
		s := sp{trace: 1, id: uint64(i + 1), parent: uint64(i), service: "deep", start: float64(i) / 1e3, end: 900 - float64(i)/1e3}
		switch shape {
		case "cycle":
			if i == 0 {
				s.parent = uint64(n)
			}
			flag = "cycle"
		case "wide":
			s.parent = min(s.parent, 1)
			if i > 0 { // the latest first
				s.start = float64(n-i) / 1e3
			}
		case "self":
			s.parent, flag = s.id, "self_parent"
		case "orphans":
			s.parent, flag = s.id+1<<40, "orphan"
		case "colliding":
			s.id, s.parent = uint64(i+1)*inverse, uint64(i)*inverse
		}
		spans = append(spans, s)
	}
	return spans, flag
}

// R19: the times are those of the analysis of one such trace.
func TestAHugeTraceOfAnyShapeIsAnalysedWhole(t *testing.T) {
	const n = 100_000
	shapes := []string{"deep", "wide", "cycle", "self", "orphans", "colliding"}
	tr := trial.Start(t, len(shapes))
	for i := range tr.N {
		shape := shapes[i%len(shapes)]
		t.Run(shape, func(t *testing.T) {
			p := newPath(t, Config{Discover: true})
			spans, flag := hostile(shape, n)
			var frames []*trimtab.SpanFrame
			for i := 0; i < n; i += 10_000 {
				frames = append(frames, frame(t, spans[i:i+10_000]...))
			}
			frames = append(frames, frame(t, sp{trace: 2, id: 1, service: "good", start: 1, end: 2}))
			began := time.Now()
			got := run(t, p, frames...)
			tr.Took(time.Since(began))
			if g := count(p, "trimtab_path_analysed_spans_total"); g != n+1 {
				t.Errorf("analysed %v spans, want %d", g, n+1)
			}
			if got["good"] == nil || got["good"].Requests != 1 {
				t.Error("another trace's request is missing")
			}
			if flag != "" && got["deep"].Flagged[flag] != n {
				t.Errorf("flagged %v, want %d %s", got["deep"].Flagged, n, flag)
			}
			if flag == "" && got["deep"].Requests != 1 {
				t.Errorf("%v requests, want 1", got["deep"].Requests)
			}
		})
	}
}

func BenchmarkHostile(b *testing.B) {
	for _, shape := range []string{"deep", "wide", "cycle", "self", "orphans", "colliding"} {
		for _, n := range []int{10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/spans=%d", shape, n), func(b *testing.B) {
				spans, _ := hostile(shape, n)
				var frames []*trimtab.SpanFrame
				for i := 0; i < n; i += 10_000 {
					frames = append(frames, frame(b, spans[i:i+10_000]...))
				}
				for b.Loop() {
					run(b, newPath(b, Config{Discover: true}), frames...)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/span")
			})
		}
	}
}
