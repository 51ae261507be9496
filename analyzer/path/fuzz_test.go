package path

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
)

func FuzzPathTakesAnyFrame(f *testing.F) {
	f.Add(frame(f, sp{trace: 1, id: 1, service: "a", start: 0, end: 10}, sp{trace: 1, id: 2, parent: 1, service: "b", start: 5, end: 20}).Data, uint16(100))
	f.Add(frame(f, sp{trace: 1, id: 1, parent: 2, service: "a", end: 10}, sp{trace: 1, id: 2, parent: 1, service: "b", end: -1}).Data, uint16(3000))
	f.Add([]byte{}, uint16(0))
	f.Fuzz(func(t *testing.T, data []byte, wait uint16) {
		p, err := New(Config{Discover: true, MaxSpans: 50, MaxSpansPerTrace: 20, MaxTraces: 10, MaxWorkloads: 5, MaxComponents: 7})
		if err != nil {
			t.Fatal(err)
		}
		var out []trimtab.Value
		now := time.Duration(0)
		for range 3 {
			out = append(out, p.Step(at(now), &trimtab.SpanFrame{Data: data})...)
			now += time.Duration(wait) * ms
		}
		out = append(out, p.Step(at(now), nil)...)
		out = append(out, p.Flush(at(now))...)
		balanced(t, p)
		if n := p.spans.held(); n != 0 {
			t.Errorf("%d spans held after the flush", n)
		}
		for _, v := range out {
			if err := v.Validate(); err != nil {
				t.Error(err)
			}
			if b, err := codec.Encode(v, trimtab.Origin{}); err != nil {
				t.Error(err)
			} else if _, _, err := codec.Decode(trimtab.KindSketch, b); err != nil {
				t.Error(err)
			}
		}
	})
}
