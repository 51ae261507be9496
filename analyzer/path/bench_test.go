package path

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
)

// load makes frames of traces of a fixed shape whose ids are rewritten before
// each use, so that the benchmark sees unique ids and little of its own cost.
type load struct {
	frames   []*trimtab.SpanFrame
	perTrace int
	next     uint64
	rand     *rand.Rand
}

// newLoad makes frames of 512 spans, or of one trace when that is more, over
// four services: a root, and servers and clients in turn below.
func newLoad(tb testing.TB, perTrace int) *load {
	l := &load{perTrace: perTrace, rand: rand.New(rand.NewPCG(1, 2))}
	per := max(512, perTrace)
	for range 8 {
		var spans []sp
		for len(spans)+perTrace <= per {
			base := uint64(len(spans))
			for i := range perTrace {
				s := sp{trace: uint64(len(spans) / perTrace), id: base + uint64(i) + 1, service: fmt.Sprintf("service-%d", i/2%4),
					kind: trimtab.SpanKind(2 + i%2), start: 0, end: 100 + 50*l.rand.Float64()}
				if i > 0 {
					up := spans[int(base)+(i-1)/2]
					s.parent = up.id
					span := up.end - up.start
					s.start = up.start + span*0.4*l.rand.Float64()
					s.end = up.end - span*0.4*l.rand.Float64()
				}
				spans = append(spans, s)
			}
			one := spans[base:]
			l.rand.Shuffle(perTrace, func(i, j int) { one[i], one[j] = one[j], one[i] })
		}
		for at := 0; at < len(spans); at += codec.MaxFrameSpans {
			l.frames = append(l.frames, frame(tb, spans[at:min(at+codec.MaxFrameSpans, len(spans))]...))
		}
	}
	return l
}

// frame returns the i-th frame with new trace ids.
func (l *load) frame(i int) *trimtab.SpanFrame {
	f := l.frames[i%len(l.frames)]
	spans := f.Data[len(f.Data)-l.spans(f)*codec.SpanBytes:]
	if l.perTrace > codec.MaxFrameSpans {
		// A trace over several frames gets its id when its first frame comes.
		if i%(len(l.frames)/8) == 0 {
			l.next++
		}
	} else {
		l.next += 1 << 20
	}
	for k := 0; k < len(spans); k += codec.SpanBytes {
		id := spans[k+8 : k+16]
		low := binary.BigEndian.Uint64(id) & 0xfffff
		binary.BigEndian.PutUint64(id, low|l.next<<20)
		binary.BigEndian.PutUint64(spans[k:], l.next*0x9E3779B97F4A7C15)
	}
	return f
}

func (l *load) spans(f *trimtab.SpanFrame) int { return int(binary.LittleEndian.Uint32(f.Data[8:])) }

// shift moves the times of all spans to now.
func (l *load) shift(f *trimtab.SpanFrame, by time.Duration) {
	spans := f.Data[len(f.Data)-l.spans(f)*codec.SpanBytes:]
	for k := 0; k < len(spans); k += codec.SpanBytes {
		for _, at := range []int{k + 32, k + 40} {
			binary.LittleEndian.PutUint64(spans[at:], binary.LittleEndian.Uint64(spans[at:])+uint64(by))
		}
	}
}

// BenchmarkPath measures frames in to sketches out at 1,000,000 spans a
// second of event time, by spans per trace.
func BenchmarkPath(b *testing.B) {
	for _, perTrace := range []int{1, 4, 16, 64, 512, 16384} {
		b.Run(fmt.Sprintf("spans-per-trace=%d", perTrace), func(b *testing.B) {
			benchmarkPath(b, perTrace, Config{Discover: true}, 1_000_000)
		})
	}
}

// BenchmarkInstances measures the same where requests are counted by instance.
func BenchmarkInstances(b *testing.B) {
	var c Config
	for i := range 4 {
		name := fmt.Sprintf("service-%d", i)
		c.Workloads = append(c.Workloads, Match{Name: name, Attributes: map[string][]string{"service.name": {name}}})
	}
	for _, perTrace := range []int{1, 16} {
		b.Run(fmt.Sprintf("spans-per-trace=%d", perTrace), func(b *testing.B) { benchmarkPath(b, perTrace, c, 1_000_000) })
	}
}

// BenchmarkHeld measures the same by how many spans are held at a time.
func BenchmarkHeld(b *testing.B) {
	for _, rate := range []int{10_000, 100_000, 1_000_000, 4_000_000} {
		b.Run(fmt.Sprintf("spans-per-second=%d", rate), func(b *testing.B) {
			benchmarkPath(b, 16, Config{Discover: true}, rate)
		})
	}
}

func benchmarkPath(b *testing.B, perTrace int, c Config, rate int) {
	l := newLoad(b, perTrace)
	p := newPath(b, c)
	shifts := make([]time.Duration, len(l.frames))
	now := time.Duration(0)
	spans, held := 0, 0
	step := func(i int) {
		f := l.frame(i)
		n := l.spans(f)
		l.shift(f, now-shifts[i%len(l.frames)])
		shifts[i%len(l.frames)] = now
		p.Step(at(now+200*ms), f)
		now += time.Duration(n) * time.Second / time.Duration(rate)
		spans += n
		held = max(held, p.spans.held())
	}
	i := 0
	for ; now < time.Second; i++ { // fill
		step(i)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	spans = 0
	used := cpuTime(b)
	for b.Loop() {
		step(i)
		i++
	}
	used = cpuTime(b) - used
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(spans), "ns/span")
	b.ReportMetric(float64(used.Nanoseconds())/float64(spans), "cpu-ns/span")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(spans), "garbage-B/span")
	b.ReportMetric(float64(held), "held-spans")
}

// cpuTime is what this process has used: other than wall time, it says the
// same on a busy machine.
func cpuTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRewrite is the benchmarks' own part of the cost.
func BenchmarkRewrite(b *testing.B) {
	l := newLoad(b, 16)
	spans := 0
	for b.Loop() {
		f := l.frame(spans)
		l.shift(f, 1)
		spans += l.spans(f)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(spans), "ns/span")
}

// BenchmarkMemory reports the memory of held spans.
func BenchmarkMemory(b *testing.B) {
	for _, perTrace := range []int{1, 16} {
		b.Run(fmt.Sprintf("spans-per-trace=%d", perTrace), func(b *testing.B) {
			for b.Loop() {
				l := newLoad(b, perTrace)
				runtime.GC()
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				p := newPath(b, Config{Discover: true, MaxTraces: 1 << 20})
				for i := 0; p.spans.held() < 1<<18; i++ {
					p.Step(at(0), l.frame(i))
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(p.spans.held()), "B/held-span")
				runtime.KeepAlive(p)
			}
		})
	}
}
