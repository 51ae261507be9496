package path

import (
	"runtime"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

// TestASpanInFlightTakesAtMost128Bytes holds the model of docs/figures.md: traces whose
// last span may still come, four spans each.
func TestASpanInFlightTakesAtMost128Bytes(t *testing.T) {
	heap := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	l := newLoad(t, 4)
	p := newPath(t, Config{Discover: true})
	shifts := make([]time.Duration, len(l.frames))
	held := func(n int) (int, uint64) {
		for i := 0; p.spans.held() < n; i++ {
			if i > n {
				t.Fatalf("%d spans are held, want %d", p.spans.held(), n)
			}
			f := l.frame(i)
			l.shift(f, -shifts[i%len(l.frames)])
			shifts[i%len(l.frames)] = 0
			p.Step(at(200*ms), trimtab.Value(f))
		}
		return p.spans.held(), heap()
	}
	few, before := held(20_000)
	many, after := held(200_000)
	each := float64(after-before) / float64(many-few)
	t.Logf("a span in flight takes %.0f bytes", each)
	if each > 128 {
		t.Errorf("a span in flight takes %.0f bytes, want at most 128", each)
	}
	runtime.KeepAlive(p)
}
