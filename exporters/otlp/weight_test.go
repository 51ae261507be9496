package otlp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/internal/metric"
)

const mebibyte = 1 << 20

// wordy is a plan of about a mebibyte.
func wordy(sequence uint64) *trimtab.Plan {
	p := &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: sequence, Step: 1, Time: noon, Lease: 10, Cause: trimtab.Cause{Kind: codes.CauseTick}}
	for i := range 64 {
		p.Actions = append(p.Actions, trimtab.Action{KnobID: trimtab.KnobID{Pool: p.Pool, Host: "h", Workload: fmt.Sprint("w", i), Resource: "cpu"}, Mode: trimtab.Act,
			Why: trimtab.Reason{Summary: strings.Repeat("x", mebibyte/64)}})
	}
	return p
}

func TestAValueWeighsAtLeastWhatItsTextsAndListsHold(t *testing.T) {
	if got := weigh(wordy(1)); got < mebibyte || got > mebibyte+64*1000 {
		t.Errorf("a plan of a mebibyte weighs %d", got)
	}
	e := &trimtab.Estimate{Workload: "w", Time: time.Now(), Curves: map[string]*trimtab.Curve{"memory": {Knots: make([]trimtab.Knot, 1000)}},
		Inputs: []trimtab.Input{{Name: "load", Missing: strings.Repeat("y", 5000)}}}
	if got := weigh(e); got < 37_000 || got > 39_000 {
		t.Errorf("1000 knots of 32 bytes and 5000 bytes of text weigh %d", got)
	}
}

func TestValuesThatWaitAreBoundedInBytes(t *testing.T) {
	set := metric.NewSet()
	e := &Exporter{metrics: set, assemble: newAssembler(), queue: make(chan waiting, queued)}
	for i := range uint64(100) {
		e.Observe(wordy(i))
		if got := e.waits.Load(); got > maxQueuedBytes {
			t.Fatalf("%d bytes wait", got)
		}
	}
	waited := len(e.queue)
	if dropped := testutil.ToFloat64(set.Counter("trimtab_exporter_dropped_total", "otlp")); int(dropped)+waited != 100 || waited < 25 {
		t.Errorf("%d wait, %v dropped", waited, dropped)
	}
	for len(e.queue) > 0 {
		e.accept(noon, <-e.queue)
	}
	if got := e.waits.Load(); got != 0 {
		t.Errorf("an empty queue weighs %d", got)
	}
	e.Observe(wordy(1))
	if len(e.queue) != 1 {
		t.Error("the queue has room again, and takes nothing")
	}
}

func TestOpenDecisionsAndTheirEstimatesAreBoundedInBytes(t *testing.T) {
	a := newAssembler()
	for i := range uint64(200) {
		a.observe(noon, wordy(i))
		o := &trimtab.Outcome{Pool: "p", Host: "other", Epoch: 1, Sequence: i, Step: 1, Time: noon, Results: make([]trimtab.Result, 1000)}
		a.observe(noon, o)
		a.observe(noon, &trimtab.Estimate{Workload: fmt.Sprint(i % 50), Time: noon, Hold: &trimtab.Held{Code: codes.HeldOther, Text: strings.Repeat("z", mebibyte)}})
		sum := int64(0)
		for _, d := range a.open {
			sum += d.weight
		}
		if sum != a.opened || sum > maxOpenBytes || a.kept > maxKeptBytes {
			t.Fatalf("open decisions weigh %d, counted %d; estimates %d", sum, a.opened, a.kept)
		}
	}
	if last := a.open[len(a.open)-1]; last.sequence != 199 {
		t.Errorf("the newest was dropped: %d", last.sequence)
	}
	a.expire(noon.Add(time.Hour))
	if a.opened != 0 {
		t.Errorf("nothing is open, and weighs %d", a.opened)
	}
}

// keeper is a processor that keeps what it gets, as batching does while the
// endpoint is down.
type keeper struct {
	sdktrace.SpanProcessor
	kept []sdktrace.ReadOnlySpan
}

func (k *keeper) OnEnd(s sdktrace.ReadOnlySpan) { k.kept = append(k.kept, s) }

func TestSpansThatWaitForTheEndpointAreBoundedInBytes(t *testing.T) {
	set, keeper := metric.NewSet(), &keeper{}
	g := &spanGate{SpanProcessor: keeper, next: tracetest.NewInMemoryExporter(), metrics: set, complainer: &complainer{}, budget: 2048}
	context := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled})
	for range 100 {
		g.OnEnd(tracetest.SpanStub{Name: "plan", SpanContext: context, Attributes: []attribute.KeyValue{attribute.String("why", strings.Repeat("x", mebibyte))}}.Snapshot())
	}
	if n := len(keeper.kept); n > maxSpanBytes/mebibyte || n < 25 {
		t.Errorf("%d spans of a mebibyte wait", n)
	}
	if err := (batchExporter{g}).ExportSpans(t.Context(), keeper.kept); err != nil {
		t.Fatal(err)
	}
	if g.bytes.Load() != 0 || g.inside.Load() != 0 {
		t.Errorf("all is sent, and %d bytes of %d spans are counted", g.bytes.Load(), g.inside.Load())
	}
}
