package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/pprof"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/path"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/otlp"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/internal/site"
	"github.com/trimtab/trimtab/pipeline"
)

// slowed is a step that takes longer for each value.
type slowed struct {
	*path.Path
	by time.Duration
}

func (s slowed) Step(now time.Time, in trimtab.Value) []trimtab.Value {
	if in != nil {
		time.Sleep(s.by)
	}
	return s.Path.Step(now, in)
}

// sketches sums up what arrives at the end of the path.
type sketches struct{ milliRequests atomic.Uint64 }

func (s *sketches) handle(_ context.Context, d bus.Delivery) error {
	if sketch, ok := d.Value.(*trimtab.Sketch); ok && sketch.Workload == "service-0" {
		s.milliRequests.Add(uint64(sketch.Requests*1000 + 0.5))
	}
	return nil
}

// receive is the receiver process.
func (o *options) receive() error {
	dir, err := os.MkdirTemp("", "trimtab-ingest-")
	if err != nil {
		return fmt.Errorf("make store: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b, err := natsbus.Open(ctx, natsbus.Config{Dir: dir, Source: "ingest"})
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	set := metric.NewSet()
	var end sketches
	if _, err := b.Subscribe(ctx, bus.Subscription{Kind: trimtab.KindSketch, Handle: end.handle}); err != nil {
		return err
	}
	sink, err := collector.Open(collector.Config{Bus: b, Metrics: set})
	if err != nil {
		return err
	}
	receiver, err := otlp.Open(otlp.Config{Sink: sink, Metrics: set, GRPC: "127.0.0.1:0"})
	if err != nil {
		return err
	}
	// As trimtab sets it up by default.
	analyzer, err := path.New(site.PathConfig(config.Default(), 0))
	if err != nil {
		return err
	}
	ready, done := make(chan string, 8), make(chan error, 2)
	go func() {
		done <- pipeline.Run(ctx, pipeline.Stage{
			Name: "path", Bus: b, Step: slowed{analyzer, o.SlowEach}, Tick: 100 * time.Millisecond, Metrics: set,
			Consumes: []bus.Subscription{{Kind: trimtab.KindSpans, Consumer: "path"}},
			Ready: func(why string) {
				select {
				case ready <- why:
				default: // nobody waits any more
				}
			},
		})
	}()
	for why := "not started"; why != ""; {
		select {
		case why = <-ready:
		case err := <-done:
			return err
		}
	}
	go func() { done <- receiver.Serve(ctx) }()
	if o.Profile != "" {
		stop, err := profile(o.Profile)
		if err != nil {
			return err
		}
		defer stop()
	}
	if err := json.NewEncoder(os.Stdout).Encode(map[string]string{"Address": receiver.GRPCAddr()}); err != nil {
		return err
	}
	err = serveStates(func() { drain(set) }, func(s *state) {
		fill(s, set)
		s.Requests, s.SketchesLost = float64(end.milliRequests.Load())/1000, b.Stats().Lost[trimtab.KindSketch]
	})
	cancel()
	return errors.Join(err, <-done, <-done)
}

func profile(name string) (stop func(), err error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("write profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	return func() { pprof.StopCPUProfile(); f.Close() }, nil
}

// fill reads the program's own counters.
func fill(s *state, set *metric.Set) {
	families, err := set.Gather()
	if err != nil {
		return
	}
	for _, f := range families {
		var sum float64
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
		switch f.GetName() {
		case "trimtab_path_received_spans_total":
			s.Received = uint64(sum)
		case "trimtab_path_analysed_spans_total":
			s.Analysed = uint64(sum)
		case "trimtab_path_duplicate_spans_total":
			s.Duplicates = uint64(sum)
		case "trimtab_path_dropped_spans_total":
			s.Dropped = uint64(sum)
		case "trimtab_path_held_spans":
			s.Held = uint64(sum)
		}
	}
}

// drain waits until the path step holds nothing and its intervals are out.
func drain(set *metric.Set) {
	for range 200 { // longer than any trace waits
		time.Sleep(100 * time.Millisecond)
		var s state
		if fill(&s, set); s.Received > 0 && s.Held == 0 {
			time.Sleep(2 * time.Second) // an interval and its grace
			return
		}
	}
}

// discard is a receiver that throws the bytes away.
func (o *options) discard() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(nothing{}))
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "opentelemetry.proto.collector.trace.v1.TraceService", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Export", Handler: func(_ any, _ context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			return nil, read(nil)
		}}},
	}, nil)
	go func() { _ = server.Serve(listener) }() // ends with the process
	if err := json.NewEncoder(os.Stdout).Encode(map[string]string{"Address": listener.Addr().String()}); err != nil {
		return err
	}
	return serveStates(func() {}, func(*state) {})
}

// nothing is a codec that reads nothing and writes nothing.
type nothing struct{}

func (nothing) Name() string                         { return proto.Name }
func (nothing) Marshal(any) (mem.BufferSlice, error) { return nil, nil }
func (nothing) Unmarshal(mem.BufferSlice, any) error { return nil }
