package contribution

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/path"
	"github.com/trimtab/trimtab/codec"
)

// perTrace is the spans of a trace: 1 of the entry, and 29 of 10 components on 3
// hosts, as client and server, nested and one after the other.
const perTrace = 30

// tracesOf packs traces that begin at a time, 100 µs apart.
func tracesOf(tb testing.TB, r *rand.Rand, first, n int, at time.Time) *trimtab.SpanFrame {
	var w codec.FrameWriter
	var resources []uint16
	for i := range 12 {
		k, ok := w.AddResource([]trimtab.Attr{{Key: "service.name", Value: fmt.Sprintf("s%d", i%10)}, {Key: "host.name", Value: fmt.Sprintf("h%d", i%3)}})
		if !ok {
			tb.Fatal("frame full of resources")
		}
		resources = append(resources, k)
	}
	for i := range n {
		s := trimtab.Span{Adjusted: 1, Kind: trimtab.SpanServer, Resource: resources[0]}
		binary.BigEndian.PutUint64(s.TraceID[:], uint64(first+i)*0x9E3779B97F4A7C15+1)
		start, length := at.UnixNano()+int64(i)*100_000, int64(20e6+10e6*r.ExpFloat64())
		s.Start, s.End = start, start+length
		binary.BigEndian.PutUint64(s.SpanID[:], 1)
		w.Add(&s)
		for k := 1; k < perTrace; k++ {
			up := (k + 1) / 2 // of a client the server before it, of a server its client
			s.Kind, s.Resource = trimtab.SpanClient, resources[up%12]
			if k%2 == 0 {
				up, s.Kind, s.Resource = k, trimtab.SpanServer, resources[(k/2+1)%12]
			}
			binary.BigEndian.PutUint64(s.SpanID[:], uint64(k+1))
			binary.BigEndian.PutUint64(s.Parent[:], uint64(up))
			from := start + length*int64(k)/80
			s.Start, s.End = from, from+length/2-int64(k)*length/80
			w.Add(&s)
		}
	}
	return w.Frame(0)
}

// used is the processor time of this process so far, in seconds: it says the same on
// a busy machine.
func used(tb testing.TB) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// BenchmarkContributions measures 100,000 traces of 30 spans from frames to
// contributions, with the path step, its sketches, and Live: the time of all, and
// the heap that is in use after them.
func BenchmarkContributions(b *testing.B) {
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprintf("s%d", i))
	}
	for _, traces := range []int{10_000, 30_000, 100_000} {
		b.Run(fmt.Sprintf("traces=%d", traces), func(b *testing.B) {
			var heap, took float64
			for range b.N {
				p, err := path.New(path.Config{Workloads: []path.Match{{Name: "w", Attributes: map[string][]string{"service.name": names}, Threshold: 50 * time.Millisecond}}})
				if err != nil {
					b.Fatal(err)
				}
				l, r := NewLive(Objective{Workload: "w", SLO: 0.05}), rand.New(rand.NewPCG(1, 1))
				take := func(values []trimtab.Value) {
					for _, v := range values {
						s := v.(*trimtab.Sketch)
						l.Observe(Interval{From: s.From, To: s.To, Requests: s.Requests, Latency: &s.Latency, Servpods: s.Servpods, Calls: s.Calls})
						l.Report(s.To)
					}
				}
				now := noon
				for first := 0; first < traces; first += 100 {
					f := tracesOf(b, r, first, 100, now)
					now = now.Add(100 * time.Millisecond) // 1,000 traces a second
					from := used(b)
					take(p.Step(now, f))
					took += used(b) - from
				}
				from := used(b)
				take(p.Flush(now.Add(time.Minute)))
				c := l.Report(now)
				took += used(b) - from
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				heap = float64(m.HeapAlloc)
				if c == nil || len(c.Servpods) < 10 {
					b.Fatalf("%+v", c)
				}
				runtime.KeepAlive(p)
				runtime.KeepAlive(l)
			}
			b.ReportMetric(took/float64(b.N), "cpu-s/all")
			b.ReportMetric(took*1e9/float64(b.N)/float64(traces)/perTrace, "cpu-ns/span")
			b.ReportMetric(heap/1e6, "MB-heap")
		})
	}
}
