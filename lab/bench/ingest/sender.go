package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// traceSpans is the number of spans in a trace, services how many share it. One in
// lateCalls calls is of processes that collect their spans for up to collects, as SDKs do.
const (
	traceSpans = 16
	services   = 4
	lateCalls  = 10
	collects   = 5 * time.Second
)

// sending is what the sender says at the end. Sent counts spans that were
// answered OK, once; Retried, spans that had to be sent again.
type sending struct {
	Sent, Retried uint64
	Elapsed, CPU  time.Duration
	P99           time.Duration
}

// send fills the receiver for the given time.
func (o *options) send() error {
	var mu sync.Mutex
	var sum sending
	var latencies []time.Duration
	var first error
	begin, cpu := time.Now(), cpuTime()
	var all sync.WaitGroup
	for c := range o.Conns {
		conn, err := grpc.NewClient(o.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return fmt.Errorf("connect to %s: %w", o.Address, err)
		}
		for i := range o.Calls {
			all.Add(1)
			go func() {
				defer all.Done()
				s := &stream{client: collectorpb.NewTraceServiceClient(conn), batch: newBatch(o.Batch, "service"), late: newBatch(o.Batch, "late"), random: rand.New(rand.NewPCG(uint64(c), uint64(i))), rate: float64(o.Rate) / float64(o.Conns*o.Calls)}
				err := s.run(begin.Add(o.For))
				mu.Lock()
				defer mu.Unlock()
				sum.Sent += s.sent
				sum.Retried += s.retried
				latencies = append(latencies, s.latencies...)
				if err != nil {
					first = err
				}
			}()
		}
	}
	all.Wait()
	if first != nil {
		return first
	}
	sum.Elapsed, sum.CPU = time.Since(begin), cpuTime()-cpu
	slices.Sort(latencies)
	if n := len(latencies); n > 0 {
		sum.P99 = latencies[n*99/100]
	}
	if err := json.NewEncoder(os.Stdout).Encode(sum); err != nil {
		return fmt.Errorf("answer the parent: %w", err)
	}
	return nil
}

// stream sends one request after the other.
type stream struct {
	client        collectorpb.TraceServiceClient
	batch, late   *batch
	random        *rand.Rand
	rate          float64 // spans/s at most; 0: as many as it can
	sent, retried uint64
	latencies     []time.Duration
}

func (s *stream) run(until time.Time) error {
	ctx, begin := context.Background(), time.Now()
	for calls := 0; time.Now().Before(until); calls++ {
		b, end := s.batch, time.Now()
		if calls%lateCalls == 0 {
			b, end = s.late, end.Add(-time.Duration(s.random.Int64N(int64(collects))))
		}
		b.renew(s.random, end)
		for {
			start := time.Now()
			answer, err := s.client.Export(ctx, b.request)
			if err == nil {
				if n := answer.GetPartialSuccess().GetRejectedSpans(); n > 0 {
					return fmt.Errorf("%d spans rejected", n)
				}
				if calls%8 == 0 {
					s.latencies = append(s.latencies, time.Since(start))
				}
				break
			}
			if status.Code(err) != codes.Unavailable {
				return fmt.Errorf("export: %w", err)
			}
			s.retried += uint64(len(b.spans))
			time.Sleep(100 * time.Millisecond)
		}
		s.sent += uint64(len(b.spans))
		if s.rate > 0 {
			time.Sleep(time.Until(begin.Add(time.Duration(float64(s.sent) / s.rate * 1e9))))
		}
	}
	return nil
}

// batch is a request whose spans get new ids and times for each call.
type batch struct {
	request *collectorpb.ExportTraceServiceRequest
	spans   []*tracepb.Span // in order of trace, parents first
}

// newBatch builds a request of n spans: traces of 16 spans over 4 services of a name,
// each service with a resource of 2 attributes, each span with 3.
func newBatch(n int, name string) *batch {
	b := &batch{request: &collectorpb.ExportTraceServiceRequest{}}
	var scopes []*tracepb.ScopeSpans
	for i := range services {
		scope := &tracepb.ScopeSpans{Scope: &commonpb.InstrumentationScope{Name: "bench"}}
		scopes = append(scopes, scope)
		b.request.ResourceSpans = append(b.request.ResourceSpans, &tracepb.ResourceSpans{
			Resource:   &resourcepb.Resource{Attributes: []*commonpb.KeyValue{text("service.name", fmt.Sprint(name, "-", i)), text("service.instance.id", fmt.Sprint(name, "-", i, "-0"))}},
			ScopeSpans: []*tracepb.ScopeSpans{scope},
		})
	}
	for i := range n {
		s := &tracepb.Span{TraceId: make([]byte, 16), SpanId: make([]byte, 8), Name: "GET /api/v1/cart", Kind: tracepb.Span_SPAN_KIND_SERVER,
			Attributes: []*commonpb.KeyValue{text("http.request.method", "GET"), text("http.route", "/api/v1/cart"), text("server.address", "cart.shop.svc")}}
		if i%traceSpans != 0 {
			s.ParentSpanId = make([]byte, 8)
		}
		b.spans = append(b.spans, s)
		scope := scopes[i%traceSpans*services/traceSpans]
		scope.Spans = append(scope.Spans, s)
	}
	return b
}

func text(k, v string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: k, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v}}}
}

// renew gives every trace new ids, and times that end at now.
func (b *batch) renew(random *rand.Rand, now time.Time) {
	var hi, lo uint64
	for i, s := range b.spans {
		k := i % traceSpans
		if k == 0 {
			hi, lo = random.Uint64(), random.Uint64()
		}
		binary.LittleEndian.PutUint64(s.TraceId[:8], hi)
		binary.LittleEndian.PutUint64(s.TraceId[8:], lo)
		binary.LittleEndian.PutUint64(s.SpanId, lo+uint64(k)+1)
		if k > 0 {
			binary.LittleEndian.PutUint64(s.ParentSpanId, lo+uint64(k-1)/2+1)
		}
		s.StartTimeUnixNano = uint64(now.Add(-time.Duration(2*traceSpans-k) * 100 * time.Microsecond).UnixNano())
		s.EndTimeUnixNano = uint64(now.Add(-time.Duration(k) * 100 * time.Microsecond).UnixNano())
	}
}
