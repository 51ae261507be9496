package path

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/pipeline/steptest"
	"github.com/trimtab/trimtab/quantity"
)

func TestPathMeetsTheContractOfSteps(t *testing.T) {
	c := twoWorkloads()
	c.Timeout, c.Grace, c.MaxSpans, c.MaxSpansPerTrace, c.MaxTraces = time.Second, 3*time.Second, 2000, 100, 50
	steptest.Run(t, steptest.Suite{
		New: func() trimtab.Step { return newPath(t, c) },
		Live: func(rt *rapid.T, l *steptest.Life) {
			now := time.Duration(0)
			for range rapid.IntRange(1, 6).Draw(rt, "frames") {
				spans := drawTraces(rt)
				for i := range spans {
					spans[i].start += float64(now / ms)
					spans[i].end += float64(now / ms)
				}
				l.Give(at(now), frame(t, spans...))
				now += time.Duration(rapid.IntRange(0, 600).Draw(rt, "ms")) * ms
				l.Give(at(now), nil)
			}
			for range 8 {
				now += time.Second
				l.Give(at(now), nil)
			}
		},
		Forgets: "open traces and intervals, and what was learnt of senders",
		Foreign: func(rt *rapid.T, now time.Time) trimtab.Value {
			return rapid.SampledFrom([]trimtab.Value{
				frame(t, sp{trace: 1 << 40, id: 1, service: "z1", start: float64(now.UnixNano()-epoch) / 1e6, end: float64(now.UnixNano()-epoch)/1e6 + 1}),
				&trimtab.SpanFrame{Data: []byte("no frame")},
				&trimtab.Sample{Workload: "a", Quantity: quantity.Load, Source: "test", Time: now, Value: 1},
				&trimtab.Holding{Host: "h", Time: now},
			}).Draw(rt, "foreign")
		},
	})
}
