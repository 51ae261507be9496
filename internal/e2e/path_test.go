package e2e

import (
	"cmp"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/path"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/collector/spanfile"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/quantile"
)

// recording opens a recorded trace file below TRIMTAB_DATA.
func recording(t *testing.T, name ...string) []*trimtab.SpanFrame {
	t.Helper()
	dir := os.Getenv("TRIMTAB_DATA")
	if dir == "" {
		t.Skip("TRIMTAB_DATA is not set: no recorded data to read")
	}
	r, err := spanfile.Open(filepath.Join(append([]string{dir}, name...)...), spanfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Frames
}

// sent is a span with its sender.
type sent struct {
	trimtab.Span
	resource []byte
}

// when is the time at which s is reported: its end, or its start when it has
// none.
func (s *sent) when() int64 { return max(s.Start, s.End) }

// live returns the spans of frames in the order in which they ended, as an
// exporter would have sent them.
func live(t *testing.T, frames []*trimtab.SpanFrame) (spans []sent) {
	t.Helper()
	for _, f := range frames {
		r, err := codec.ReadFrame(f.Data)
		if err != nil {
			t.Fatal(err)
		}
		var resources [][]byte
		r.Resources(func(_ int, packed []byte) bool {
			resources = append(resources, packed)
			return true
		})
		for s := (sent{}); r.Next(&s.Span); {
			s.resource = resources[s.Resource]
			spans = append(spans, s)
		}
	}
	slices.SortStableFunc(spans, func(a, b sent) int { return cmp.Compare(a.when(), b.when()) })
	return spans
}

// replay plays spans through p in real order and returns the sketches.
func replay(t *testing.T, p *path.Path, spans []sent) (out []*trimtab.Sketch) {
	t.Helper()
	take := func(values []trimtab.Value) {
		for _, v := range values {
			if err := v.Validate(); err != nil {
				t.Fatal(err)
			}
			out = append(out, v.(*trimtab.Sketch))
		}
	}
	now := int64(0)
	for batch := range slices.Chunk(spans, 64) {
		var w codec.FrameWriter
		for i := range batch {
			now = max(now, batch[i].when()+int64(20*time.Millisecond))
			index, ok := w.AddPackedResource(batch[i].resource)
			batch[i].Resource = index
			if !ok || !w.Add(&batch[i].Span) {
				t.Fatal("frame full")
			}
		}
		take(p.Step(time.Unix(0, now), w.Frame(0)))
	}
	take(p.Flush(time.Unix(0, now+int64(time.Second))))
	return out
}

// merged adds the sketches up by workload.
func merged(sketches []*trimtab.Sketch) map[string]*trimtab.Sketch {
	all := map[string]*trimtab.Sketch{}
	for _, s := range sketches {
		m := all[s.Workload]
		if m == nil {
			m = &trimtab.Sketch{Workload: s.Workload, Components: map[string]*trimtab.Component{}, Flagged: map[string]uint64{}}
			all[s.Workload] = m
		}
		m.Requests += s.Requests
		m.Spans += s.Spans
		m.Latency.Merge(&s.Latency)
		for name, c := range s.Components {
			if m.Components[name] == nil {
				m.Components[name] = new(trimtab.Component)
			}
			m.Components[name].Spans += c.Spans
			m.Components[name].Sojourn.Merge(&c.Sojourn)
		}
		for name, n := range s.Flagged {
			m.Flagged[name] += n
		}
	}
	return all
}

func newPath(t *testing.T, c path.Config) *path.Path {
	t.Helper()
	p, err := path.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// counts sums up p's counts by name.
func counts(p *path.Path) map[string]float64 {
	out := map[string]float64{}
	p.Counts(func(name string, v float64, _ ...string) { out[name] += v })
	return out
}

// total is the weighted sum of a histogram's values, in seconds.
func total(h *quantile.Histogram) float64 {
	mean, _ := h.Mean()
	return mean * h.Count()
}

func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance*want }

func TestARecordedShopHasTheLatencyThatItsDescriptionStates(t *testing.T) {
	spans := live(t, recording(t, "nezha-online-boutique", "trace", "2022-08-23_17_00.json.gz"))
	p := newPath(t, path.Config{Discover: true, Timeout: time.Minute, Grace: time.Minute})
	all := merged(replay(t, p, spans))
	if len(all) != 10 {
		t.Errorf("%d workloads, want 10", len(all))
	}
	front := all["frontend"]
	if front == nil || front.Requests != 502 {
		t.Fatalf("frontend: %+v, want 502 requests", front)
	}
	for q, want := range map[float64]float64{0.5: 0.124, 0.95: 0.746, 0.99: 1.458} {
		if got, _ := front.Latency.Quantile(q); !near(got, want, 0.03) {
			t.Errorf("quantile %v of the frontend is %.0f ms, want %.0f", q, got*1e3, want*1e3)
		}
	}
	c := counts(p)
	if c["trimtab_path_analysed_spans_total"] != 22969 || c["trimtab_path_duplicate_spans_total"] != 0 || c["trimtab_path_dropped_spans_total"] != 0 {
		t.Errorf("analysed %v of 22969 spans", c["trimtab_path_analysed_spans_total"])
	}
	if c["trimtab_path_finished_traces_total"] != 502 {
		t.Errorf("%v traces, want 502", c["trimtab_path_finished_traces_total"])
	}
}

func TestSojournsOfRecordedTracesAddUpToTheirDuration(t *testing.T) {
	spans := live(t, recording(t, "dsb-socialnetwork-jaeger", "traces-14.json.gz"))
	c := path.Config{Timeout: time.Minute, Workloads: []path.Match{{Name: "social", Attributes: map[string][]string{"service.name": names(spans)}}}}
	social := merged(replay(t, newPath(t, c), spans))["social"]
	// The sampler kept each of the 14 traces with a probability of 0.2, and says so.
	if social == nil || social.Requests != 70 || social.Spans != 462 || len(social.Components) != 12 {
		t.Fatalf("got %+v, want 70 requests, 462 spans, 12 components", social)
	}
	if p50, _ := social.Latency.Quantile(0.5); p50 < 3.4e-3 || p50 > 5e-3 {
		t.Errorf("median %v s, want about 4.4 ms", p50)
	}
	sum := 0.0
	for name, c := range social.Components {
		s := total(&c.Sojourn)
		if all := total(&social.Latency); s < 0 || s > all*1.01 {
			t.Errorf("%s: sojourn of %v s in requests of %v s", name, s, all)
		}
		sum += s
	}
	// Parallel calls make the sum the greater one.
	if all := total(&social.Latency); sum < all*0.99 || sum > 3*all {
		t.Errorf("sojourns of %v s in requests of %v s", sum, all)
	}
}

// names returns the services of spans.
func names(spans []sent) (out []string) {
	for _, s := range spans {
		for _, a := range codec.UnpackResource(s.resource) {
			if a.Key == "service.name" && !slices.Contains(out, a.Value) {
				out = append(out, a.Value)
			}
		}
	}
	return out
}

func TestEveryRecordedTraceIsAnalysedToTheLastSpanInAnyOrder(t *testing.T) {
	if os.Getenv("TRIMTAB_DATA") == "" {
		t.Skip("TRIMTAB_DATA is not set: no recorded data to read")
	}
	for _, c := range []struct {
		file   []string
		traces float64
	}{
		{[]string{"zipkin-recorded-traces", "smartthings-oauth-authorization.json"}, 1},
		{[]string{"zipkin-recorded-traces", "yelp.json"}, 1},
		{[]string{"zipkin-recorded-traces", "ascend.json"}, 1},
		{[]string{"zipkin-recorded-traces", "messaging-kafka.json"}, 1},
		{[]string{"dsb-socialnetwork-jaeger", "traces-14.json.gz"}, 14},
		{[]string{"otlp-json-examples", "trace.json"}, 1},
		{[]string{"nezha-online-boutique", "trace", "2022-08-22_05_20.json.gz"}, 116},
	} {
		t.Run(filepath.Join(c.file...), func(t *testing.T) {
			spans := live(t, recording(t, c.file...))
			config := path.Config{Discover: true, Settle: 10 * time.Minute, Timeout: 10 * time.Minute, Grace: 20 * time.Minute}
			p := newPath(t, config)
			sketches := replay(t, p, spans)
			n := counts(p)
			if n["trimtab_path_analysed_spans_total"] != float64(len(spans)) || n["trimtab_path_received_spans_total"] != float64(len(spans)) {
				t.Errorf("analysed %v of %d spans", n["trimtab_path_analysed_spans_total"], len(spans))
			}
			if n["trimtab_path_finished_traces_total"] != c.traces {
				t.Errorf("%v traces, want %v", n["trimtab_path_finished_traces_total"], c.traces)
			}
			slices.Reverse(spans)
			again := replay(t, newPath(t, config), spans)
			a, _ := json.Marshal(sketches)
			if b, _ := json.Marshal(again); len(sketches) == 0 || string(a) != string(b) {
				t.Errorf("sketches differ by order of arrival:\n%s\n%s", a, b)
			}
		})
	}
}

func TestPathCountsOnlyWhatTheTableOfMetricsHas(t *testing.T) {
	rows := map[string]metric.Row{}
	for _, r := range metric.Table() {
		rows[r.Name] = r
	}
	newPath(t, path.Config{}).Counts(func(name string, _ float64, labels ...string) {
		if r, ok := rows[name]; !ok || len(r.Labels) != len(labels) {
			t.Errorf("%s%q is not in the table", name, labels)
		}
	})
}
