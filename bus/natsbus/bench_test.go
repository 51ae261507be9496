package natsbus

import (
	"context"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/codec"
)

// frameOf returns a frame of n spans.
func frameOf(n int) *trimtab.SpanFrame {
	var w codec.FrameWriter
	r, _ := w.AddResource([]trimtab.Attr{{Key: "service.name", Value: "checkout"}})
	for i := range n {
		w.Add(&trimtab.Span{TraceID: [16]byte{byte(i)}, SpanID: [8]byte{byte(i)}, Start: 1, End: 2, Adjusted: 1, Resource: r})
	}
	return w.Frame(0)
}

// BenchmarkSpans asks for the analysis of frames of 512 spans, as many
// publishers at once as a receiver has.
func BenchmarkSpans(b *testing.B) {
	m, err := Open(b.Context(), Config{Dir: b.TempDir(), Source: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	_, err = m.Subscribe(b.Context(), bus.Subscription{Kind: trimtab.KindSpans, Consumer: "path",
		Handle: func(context.Context, bus.Delivery) error { return nil }})
	if err != nil {
		b.Fatal(err)
	}
	f := frameOf(512)
	b.SetBytes(int64(len(f.Data)))
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := m.Publish(b.Context(), f); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/512, "ns/span")
}

// BenchmarkPlanToHandler publishes and handles stored values one by one.
func BenchmarkStored(b *testing.B) {
	m, err := Open(b.Context(), Config{Dir: b.TempDir(), Source: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	got := make(chan struct{}, 1)
	_, err = m.Subscribe(b.Context(), bus.Subscription{Kind: trimtab.KindAlert, Consumer: "planner",
		Handle: func(context.Context, bus.Delivery) error { got <- struct{}{}; return nil }})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := m.Publish(b.Context(), &trimtab.Alert{Workload: "w", Name: "n", Time: time.Now()}); err != nil {
			b.Fatal(err)
		}
		<-got
	}
}
