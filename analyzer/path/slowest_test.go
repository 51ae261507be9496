package path

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/merge"
	"github.com/trimtab/trimtab/codec"
)

func TestASketchPointsToItsSlowestRequestsOverTheThreshold(t *testing.T) {
	c := Config{Workloads: []Match{{Name: "w", Threshold: 100 * ms, Attributes: map[string][]string{"service.name": {"w"}}}}}
	rapid.Check(t, func(rt *rapid.T) {
		var spans []sp
		var all []trimtab.Exemplar
		for i := range rapid.IntRange(1, 30).Draw(rt, "n") {
			s := sp{trace: uint64(rapid.IntRange(0, 12).Draw(rt, "trace")), id: uint64(i + 1), service: "w", kind: trimtab.SpanServer,
				end: float64(rapid.IntRange(90, 110).Draw(rt, "latency"))}
			spans = append(spans, s)
			if s.end > 100 && s.trace > 0 {
				all = append(all, trimtab.Exemplar{TraceID: fmt.Sprintf("%032x", s.trace), SpanID: fmt.Sprintf("%016x", s.id), Latency: trimtab.Seconds(s.end / 1000)})
			}
		}
		got := run(t, newPath(t, c), frame(t, rapid.Permutation(spans).Draw(rt, "order")...))["w"]
		if diff := cmp.Diff(merge.Slowest(all, nil), got.Exemplars); diff != "" {
			rt.Errorf("exemplars of %v (-want +got)\n%s", spans, diff)
		}
	})
}

func TestWithoutAThresholdTheSlowestRequestsAreShown(t *testing.T) {
	got := run(t, newPath(t, Config{Discover: true}), frame(t, sp{trace: 1, id: 1, service: "w", end: 3}, sp{trace: 2, id: 1, service: "w", end: 5}))["w"]
	if len(got.Exemplars) != 2 || got.Exemplars[0].Latency != 0.005 {
		t.Errorf("exemplars %v", got.Exemplars)
	}
}

func TestTracesOfOurOwnDecisionsAreNoService(t *testing.T) {
	var w codec.FrameWriter
	r, _ := w.AddResource([]trimtab.Attr{{Key: "service.name", Value: "trimtab"}, {Key: trimtab.OwnAttribute, Value: "true"}})
	w.Add(&trimtab.Span{TraceID: [16]byte{1}, SpanID: [8]byte{1}, Start: epoch, End: epoch + 1e6, Adjusted: 1, Resource: r})
	if got := run(t, newPath(t, Config{Discover: true}), w.Frame(0)); len(got) != 0 {
		t.Errorf("sketches %v", got)
	}
}
