package main

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestEveryCallSendsWholeTracesThatNobodySawBefore(t *testing.T) {
	b := newBatch(64, "service")
	random := rand.New(rand.NewPCG(1, 2))
	traces := map[string]int{}
	for range 3 {
		now := time.Unix(1700000000, 0)
		b.renew(random, now)
		spans := map[string]bool{}
		for _, s := range b.spans {
			traces[string(s.TraceId)]++
			if len(s.ParentSpanId) > 0 && !spans[string(s.TraceId)+string(s.ParentSpanId)] {
				t.Errorf("span %x before its parent %x", s.SpanId, s.ParentSpanId)
			}
			spans[string(s.TraceId)+string(s.SpanId)] = true
			if s.EndTimeUnixNano <= s.StartTimeUnixNano || s.EndTimeUnixNano > uint64(now.UnixNano()) {
				t.Errorf("from %d to %d", s.StartTimeUnixNano, s.EndTimeUnixNano)
			}
		}
		if len(spans) != 64 {
			t.Errorf("%d different spans", len(spans))
		}
	}
	if len(traces) != 3*64/traceSpans {
		t.Errorf("%d traces", len(traces))
	}
	for id, n := range traces {
		if n != traceSpans {
			t.Errorf("trace %x has %d spans", id, n)
		}
	}
}
