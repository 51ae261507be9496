package record

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/trimtab/trimtab/internal/metric"
)

// BenchmarkTap is what recording costs the stage, per call, switched off and
// on; written is the share that the disk kept up with.
func BenchmarkTap(b *testing.B) {
	for _, on := range []bool{false, true} {
		b.Run(map[bool]string{false: "off", true: "on"}[on], func(b *testing.B) {
			set := metric.NewSet()
			var r *Recorder
			if on {
				var err error
				if r, err = Start(Config{Dir: b.TempDir(), Metrics: set}); err != nil {
					b.Fatal(err)
				}
			}
			tap, in, n := NewTap("learn", &echo{}, func() *Recorder { return r }), sample(1), 0
			for b.Loop() {
				tap.Step(at(n), in)
				n++
			}
			b.StopTimer()
			if !on {
				return
			}
			if err := r.Close(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(1-testutil.ToFloat64(set.Counter("trimtab_exporter_dropped_total", "record"))/float64(n), "written")
		})
	}
}

// BenchmarkWrite is the time per call in the recorder's own goroutine.
func BenchmarkWrite(b *testing.B) {
	r, err := Start(Config{Dir: b.TempDir(), Metrics: metric.NewSet()})
	if err != nil {
		b.Fatal(err)
	}
	if err := r.Close(); err != nil { // its goroutine is gone: write by hand
		b.Fatal(err)
	}
	in, out := sample(1), (&echo{}).Step(at(1), sample(1))
	for b.Loop() {
		r.write(&call{stage: "learn", now: at(1), in: in, out: out})
	}
	r.rotate()
}
