package jaeger

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	model "github.com/jaegertracing/jaeger-idl/model/v1"
	"github.com/jaegertracing/jaeger-idl/proto-gen/api_v2"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/internal/spantest"
	"github.com/trimtab/trimtab/collector/otlp"
	"github.com/trimtab/trimtab/internal/metric"
)

// gogo is the codec that Jaeger's own clients use.
type gogo struct{}

func (gogo) Name() string { return "proto" }

func (gogo) Marshal(v any) ([]byte, error) {
	if b, ok := v.([]byte); ok {
		return b, nil
	}
	return v.(interface{ Marshal() ([]byte, error) }).Marshal()
}

func (gogo) Unmarshal(b []byte, v any) error {
	return v.(interface{ Unmarshal([]byte) error }).Unmarshal(b)
}

// start runs a receiver with the service and returns both ends.
func start(t *testing.T, b *spantest.Bus) (*otlp.Service, *grpc.ClientConn) {
	t.Helper()
	set := metric.NewSet()
	sink, err := collector.Open(collector.Config{Bus: b, Metrics: set})
	if err != nil {
		t.Fatal(err)
	}
	s := New(sink, set)
	r, err := otlp.Open(otlp.Config{Sink: sink, Metrics: set, GRPC: "127.0.0.1:0", Register: func(r grpc.ServiceRegistrar) { Register(r, s) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx) }()
	conn, err := grpc.NewClient(r.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodec(gogo{})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s, conn
}

func TestJaegersOwnClientIsUnderstood(t *testing.T) {
	b := &spantest.Bus{}
	s, conn := start(t, b)
	trace, at := model.NewTraceID(7, 8), time.Unix(1700000000, 123456789)
	batch := model.Batch{
		Process: &model.Process{ServiceName: "cart", Tags: model.KeyValues{model.String("host", "a"), model.Int64("pid", 7), model.Bool("canary", true), model.Float64("load", 1.5), model.Binary("b", []byte{1})}},
		Spans: []*model.Span{
			{TraceID: trace, SpanID: 1, StartTime: at, Duration: time.Second, Tags: model.KeyValues{model.SpanKindTag(model.SpanKindServer)}},
			{TraceID: trace, SpanID: 2, StartTime: at, Duration: time.Millisecond, Tags: model.KeyValues{model.SpanKindTag(model.SpanKindClient), model.Bool("error", true)},
				References: []model.SpanRef{model.NewFollowsFromRef(trace, 9), model.NewChildOfRef(model.NewTraceID(1, 1), 5), model.NewChildOfRef(trace, 1)},
				Process:    &model.Process{ServiceName: "other"}},
		},
	}
	if _, err := api_v2.NewCollectorServiceClient(conn).PostSpans(t.Context(), &api_v2.PostSpansRequest{Batch: batch}); err != nil {
		t.Fatal(err)
	}
	id := [16]byte{7: 7, 15: 8}
	want := []spantest.Span{
		{Span: trimtab.Span{TraceID: id, SpanID: [8]byte{7: 1}, Start: at.UnixNano(), End: at.Add(time.Second).UnixNano(), Adjusted: 1, Kind: trimtab.SpanServer},
			Attrs: map[string]string{"service.name": "cart", "host": "a", "pid": "7", "canary": "true"}},
		{Span: trimtab.Span{TraceID: id, SpanID: [8]byte{7: 2}, Parent: [8]byte{7: 1}, Start: at.UnixNano(), End: at.Add(time.Millisecond).UnixNano(), Adjusted: 1, Kind: trimtab.SpanClient, Flags: trimtab.FlagError},
			Attrs: map[string]string{"service.name": "other"}},
	}
	if d := cmp.Diff(want, b.Spans()); d != "" {
		t.Error(d)
	}
	if c := s.From.Counts(); c.Received != 2 || c.Accepted != 2 {
		t.Errorf("%+v", c)
	}
}

func TestBadRequestsAreInvalidAndRefusedOnesComeAgain(t *testing.T) {
	b := &spantest.Bus{Handle: func(context.Context, *trimtab.SpanFrame) error { return errors.New("nobody there") }}
	_, conn := start(t, b)
	var none api_v2.PostSpansResponse
	if err := conn.Invoke(t.Context(), "/jaeger.api_v2.CollectorService/PostSpans", []byte("hello"), &none); status.Code(err) != codes.InvalidArgument {
		t.Errorf("%v", err)
	}
	batch := model.Batch{Spans: []*model.Span{{TraceID: model.NewTraceID(0, 1), SpanID: 1}}, Process: &model.Process{}}
	_, err := api_v2.NewCollectorServiceClient(conn).PostSpans(t.Context(), &api_v2.PostSpansRequest{Batch: batch})
	details := status.Convert(err).Details()
	if status.Code(err) != codes.Unavailable || len(details) != 1 {
		t.Fatalf("%v", err)
	}
	if _, ok := details[0].(*errdetails.RetryInfo); !ok {
		t.Errorf("%T", details[0])
	}
}

// slow converts generated types, the obvious way.
func slow(batch *model.Batch) (out []spantest.Span, rejected uint64) {
	for _, s := range batch.Spans {
		process := batch.Process
		if s.Process != nil {
			process = s.Process
		}
		attrs := map[string]string{}
		for _, kv := range process.GetTags() {
			switch kv.VType {
			case model.StringType:
				attrs[kv.Key] = kv.VStr
			case model.BoolType:
				attrs[kv.Key] = strconv.FormatBool(kv.VBool)
			case model.Int64Type:
				attrs[kv.Key] = strconv.FormatInt(kv.VInt64, 10)
			}
		}
		delete(attrs, "")
		delete(attrs, "service.name")
		if process.GetServiceName() != "" {
			attrs["service.name"] = process.GetServiceName()
		}
		if s.SpanID == 0 || s.TraceID == (model.TraceID{}) {
			rejected++
			continue
		}
		span := trimtab.Span{Adjusted: 1, Start: s.StartTime.UnixNano(), End: s.StartTime.Add(s.Duration).UnixNano()}
		binary.BigEndian.PutUint64(span.TraceID[:8], s.TraceID.High)
		binary.BigEndian.PutUint64(span.TraceID[8:], s.TraceID.Low)
		binary.BigEndian.PutUint64(span.SpanID[:], uint64(s.SpanID))
		binary.BigEndian.PutUint64(span.Parent[:], uint64(s.ParentSpanID()))
		if kind, ok := s.GetSpanKind(); ok {
			span.Kind = map[model.SpanKind]trimtab.SpanKind{model.SpanKindClient: trimtab.SpanClient, model.SpanKindServer: trimtab.SpanServer,
				model.SpanKindProducer: trimtab.SpanProducer, model.SpanKindConsumer: trimtab.SpanConsumer, model.SpanKindInternal: trimtab.SpanInternal}[kind]
		}
		if tag, ok := model.KeyValues(s.Tags).FindByKey("error"); ok && tag.AsString() == "true" {
			span.Flags = trimtab.FlagError
		}
		if tag, ok := model.KeyValues(s.Tags).FindByKey("messaging.operation"); ok && tag.AsString() == "receive" {
			span.Flags |= trimtab.FlagReceive
		}
		from := func(kind model.SpanRefType) bool {
			return slices.ContainsFunc(s.References, func(r model.SpanRef) bool { return r.RefType == kind && r.TraceID == s.TraceID })
		}
		if from(model.FollowsFrom) && !from(model.ChildOf) {
			span.Flags |= trimtab.FlagFollowsFrom
		}
		out = append(out, spantest.Span{Span: span, Attrs: attrs})
	}
	return out, rejected
}

func genTags(t *rapid.T, keys ...string) (tags model.KeyValues) {
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 0, len(keys), rapid.ID).Draw(t, "keys") {
		switch rapid.IntRange(0, 3).Draw(t, "type") {
		case 0:
			tags = append(tags, model.String(key, rapid.SampledFrom([]string{"server", "client", "consumer", "receive", "true", "x", ""}).Draw(t, "text")))
		case 1:
			tags = append(tags, model.Bool(key, rapid.Bool().Draw(t, "bool")))
		case 2:
			tags = append(tags, model.Int64(key, rapid.Int64().Draw(t, "int")))
		case 3:
			tags = append(tags, model.Float64(key, 1.5))
		}
	}
	return tags
}

func genProcess(t *rapid.T) *model.Process {
	return &model.Process{ServiceName: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "service"), Tags: genTags(t, "host", "pid", "service.name", "")}
}

func genBatch(t *rapid.T) *model.Batch {
	b := &model.Batch{Process: genProcess(t)}
	for range rapid.IntRange(0, 8).Draw(t, "spans") {
		small := rapid.Uint64Range(0, 3)
		s := &model.Span{
			TraceID: model.NewTraceID(small.Draw(t, "high"), small.Draw(t, "low")), SpanID: model.SpanID(small.Draw(t, "id")),
			StartTime: time.Unix(rapid.Int64Range(-1e9, 4e9).Draw(t, "s"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC(),
			Duration:  time.Duration(rapid.Int64Range(-1e12, 1e15).Draw(t, "d")),
			Tags:      genTags(t, "span.kind", "error", "http.method", "messaging.operation"), Logs: []model.Log{{Timestamp: time.Unix(1, 0)}},
		}
		for range rapid.IntRange(0, 3).Draw(t, "refs") {
			s.References = append(s.References, model.SpanRef{TraceID: model.NewTraceID(small.Draw(t, "rh"), small.Draw(t, "rl")), SpanID: model.SpanID(small.Draw(t, "r")),
				RefType: model.SpanRefType(rapid.IntRange(0, 1).Draw(t, "rt"))})
		}
		if rapid.Bool().Draw(t, "own process") {
			s.Process = genProcess(t)
		}
		b.Spans = append(b.Spans, s)
	}
	return b
}

func scan(b []byte) ([]spantest.Span, uint64, error) {
	p := collector.NewPacker(1)
	if err := ScanRequest(b, &collector.ResourceCache{}, p); err != nil {
		return nil, 0, err
	}
	n := p.Rejected()
	return spantest.Unpack(p.Frames()), n, nil
}

func TestTheScanReadsWhatTheGeneratedTypesRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		batch := genBatch(t)
		b, err := (&api_v2.PostSpansRequest{Batch: *batch}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		got, rejected, err := scan(b)
		if err != nil {
			t.Fatal(err)
		}
		want, wantRejected := slow(batch)
		if d := cmp.Diff(want, got); d != "" || rejected != wantRejected {
			t.Fatalf("rejected %d, want %d; %s", rejected, wantRejected, d)
		}
	})
}

func TestTimesThatDoNotFitSaturate(t *testing.T) {
	if got, err := scanTime([]byte{0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}); err != nil || got != 1<<63-1 {
		t.Error(got, err)
	}
	if got, err := scanTime([]byte{0x08, 0x80, 0x92, 0xb8, 0xc3, 0x98, 0xfe, 0xff, 0xff, 0xff, 0x01}); err != nil || got != -1<<63 {
		t.Error(got, err) // 0001-01-01
	}
}

func FuzzScanRequest(f *testing.F) {
	b, err := (&api_v2.PostSpansRequest{Batch: model.Batch{Process: &model.Process{ServiceName: "cart", Tags: model.KeyValues{model.Int64("pid", 7)}},
		Spans: []*model.Span{{TraceID: model.NewTraceID(1, 2), SpanID: 3, StartTime: time.Unix(5, 6), Duration: 7, Tags: model.KeyValues{model.Bool("error", true)},
			References: []model.SpanRef{model.NewChildOfRef(model.NewTraceID(1, 2), 1)}}}}}).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		got, rejected, err := scan(b)
		if err != nil && !errors.Is(err, trimtab.ErrInvalid) {
			t.Fatal(err)
		}
		var r api_v2.PostSpansRequest
		if r.Unmarshal(b) != nil || err != nil {
			return
		}
		if n := len(got) + int(rejected); n != len(r.Batch.Spans) {
			t.Fatal(fmt.Sprint(n, " spans, generated types ", len(r.Batch.Spans)))
		}
	})
}
