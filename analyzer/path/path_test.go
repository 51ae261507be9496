package path

import (
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/quantile"
)

// epoch is when the tests' time begins: the start of an interval.
const epoch = int64(1_800_000_000) * 1e9

func at(d time.Duration) time.Time { return time.Unix(0, epoch+int64(d)) }

const ms = time.Millisecond

// sp is a span as a test writes it: times in ms since the epoch.
type sp struct {
	trace, id, parent uint64
	service           string
	start, end        float64
	kind              trimtab.SpanKind
	flags             uint8
	adjusted          float32
	// peer is whom it calls; "": it does not tell.
	peer string
}

// frame packs spans, one resource per service, or service@host, in order of appearance, with
// at most codec.MaxPeers peers each.
func frame(tb testing.TB, spans ...sp) *trimtab.SpanFrame {
	tb.Helper()
	var w codec.FrameWriter
	services, peers := map[string]uint16{}, map[string][]string{}
	for _, s := range spans {
		r, ok := services[s.service]
		if !ok {
			service, host, ok := strings.Cut(s.service, "@")
			if !ok {
				host = "h"
			}
			r, ok = w.AddResource([]trimtab.Attr{{Key: "service.name", Value: service}, {Key: "host.name", Value: host}})
			if !ok {
				tb.Fatal("frame full of resources")
			}
			services[s.service] = r
		}
		out := trimtab.Span{Start: epoch + int64(s.start*1e6), End: epoch + int64(s.end*1e6),
			Kind: s.kind, Flags: s.flags, Adjusted: max(1, s.adjusted), Resource: r}
		if s.peer != "" {
			known := peers[s.service]
			if i := slices.Index(known, s.peer); i >= 0 {
				out.Peer = uint8(i + 1)
			} else if w.AddPeer(r, []byte(s.peer)) {
				peers[s.service], out.Peer = append(known, s.peer), uint8(len(known)+1)
			}
		}
		binary.BigEndian.PutUint64(out.TraceID[8:], s.trace)
		binary.BigEndian.PutUint64(out.SpanID[:], s.id)
		binary.BigEndian.PutUint64(out.Parent[:], s.parent)
		if !w.Add(&out) {
			tb.Fatal("frame full of spans")
		}
	}
	return w.Frame(0)
}

func newPath(tb testing.TB, c Config) *Path {
	tb.Helper()
	p, err := New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// count returns one of p's counts.
func count(p *Path, name string, labels ...string) float64 {
	total := 0.0
	p.Counts(func(n string, v float64, l ...string) {
		if n == name && (len(labels) == 0 || l[0] == labels[0]) {
			total += v
		}
	})
	return total
}

// balanced fails unless every span is accounted for.
func balanced(tb testing.TB, p *Path) {
	tb.Helper()
	c := func(name string) float64 { return count(p, "trimtab_path_"+name) }
	if got, want := c("analysed_spans_total")+c("duplicate_spans_total")+c("dropped_spans_total")+c("held_spans"), c("received_spans_total"); got != want {
		tb.Fatalf("analysed + duplicates + dropped + held = %v of %v received", got, want)
	}
}

// run steps through the frames at time 0 and returns all sketches by workload.
func run(tb testing.TB, p *Path, frames ...*trimtab.SpanFrame) map[string]*trimtab.Sketch {
	tb.Helper()
	var out []trimtab.Value
	for _, f := range frames {
		out = append(out, p.Step(at(0), f)...)
	}
	out = append(out, p.Step(at(p.config.Timeout), nil)...)
	out = append(out, p.Step(at(time.Hour), nil)...)
	balanced(tb, p)
	got := map[string]*trimtab.Sketch{}
	for _, v := range out {
		s := v.(*trimtab.Sketch)
		if err := s.Validate(); err != nil {
			tb.Fatal(err)
		}
		if got[s.Workload] != nil {
			tb.Fatalf("two sketches of %s", s.Workload)
		}
		got[s.Workload] = s
	}
	return got
}

// text is the wire form of sketches.
func text(tb testing.TB, v any) string {
	tb.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

// meanMS returns the mean in ms, or -1 when the histogram is empty.
func meanMS(h *quantile.Histogram) float64 {
	m, ok := h.Mean()
	if !ok {
		return -1
	}
	return float64(int64(m*1e6+0.5)) / 1e3
}

func TestSojournIsTheTimeInWhichNoChildRuns(t *testing.T) {
	p := newPath(t, Config{Discover: true})
	got := run(t, p, frame(t,
		sp{trace: 1, id: 1, service: "shop", start: 0, end: 100, kind: trimtab.SpanServer},
		sp{trace: 1, id: 2, parent: 1, service: "shop", start: 10, end: 40, kind: trimtab.SpanClient},
		sp{trace: 1, id: 3, parent: 1, service: "shop", start: 20, end: 60, kind: trimtab.SpanClient},
		sp{trace: 1, id: 4, parent: 3, service: "stock", start: 25, end: 55, kind: trimtab.SpanServer},
	))
	if s := got["shop"]; s.Requests != 1 || s.Spans != 3 || meanMS(&s.Latency) != 100 {
		t.Errorf("shop: %s", text(t, s))
	}
	// 100-50 of the server, 30 and 40-30 of the clients
	if m := got["shop"].Components["shop"].Sojourn; meanMS(&m) != 30 {
		t.Errorf("sojourn in shop %v ms, want 30", meanMS(&m))
	}
	if s := got["stock"]; s.Requests != 1 || meanMS(&s.Components["stock"].Sojourn) != 30 {
		t.Errorf("stock: %s", text(t, s))
	}
}
