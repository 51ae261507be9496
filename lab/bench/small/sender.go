package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// tick is how often a batch of spans is sent.
const tick = 100 * time.Millisecond

// send plays the services until ctx ends: each in its turn has a request.
func (o *options) send(ctx context.Context, address string, g *groups) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close() }()
	client := coltrace.NewTraceServiceClient(conn)
	random := rand.New(rand.NewPCG(1, 2))
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	began, sent := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticks.C:
			due := int(now.Sub(began).Seconds()*float64(o.Spans)) - sent
			if due <= 0 {
				continue
			}
			if most := max(1, o.Spans); due > most {
				sent, due = sent+due-most, most // this machine stood still
			}
			if _, err := client.Export(ctx, o.batch(sent, due, now, g, random), grpc.WaitForReady(true)); err != nil && ctx.Err() == nil {
				return fmt.Errorf("export: %w", err)
			}
			sent += due
		}
	}
}

// batch is n spans, of the workloads whose turn it is.
func (o *options) batch(sent, n int, now time.Time, g *groups, random *rand.Rand) *coltrace.ExportTraceServiceRequest {
	of := map[int]*trace.ScopeSpans{}
	for k := range n {
		i := (sent + k) % o.Groups
		if of[i] == nil {
			of[i] = &trace.ScopeSpans{}
		}
		// Needs are between 0.2 and 0.7 cores: some have too little, some too much.
		need := 0.2 + 0.5*float64(i%10)/9
		took := 20 * time.Millisecond
		if random.Float64() > g.cores(i)/need {
			took = 300 * time.Millisecond
		}
		id := make([]byte, 24)
		for b := 0; b < len(id); b += 8 {
			binary.LittleEndian.PutUint64(id[b:], random.Uint64())
		}
		of[i].Spans = append(of[i].Spans, &trace.Span{
			TraceId: id[:16], SpanId: id[16:], Name: "GET /", Kind: trace.Span_SPAN_KIND_SERVER,
			StartTimeUnixNano: uint64(now.Add(-took).UnixNano()), EndTimeUnixNano: uint64(now.UnixNano()),
		})
	}
	req := &coltrace.ExportTraceServiceRequest{}
	for i, spans := range of {
		req.ResourceSpans = append(req.ResourceSpans, &trace.ResourceSpans{
			Resource: &resource.Resource{Attributes: []*common.KeyValue{{Key: "service.name",
				Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: name(i)}}}}},
			ScopeSpans: []*trace.ScopeSpans{spans},
		})
	}
	return req
}
