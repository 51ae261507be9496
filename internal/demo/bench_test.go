package demo

import (
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab/internal/demo/loadgen"
	"github.com/trimtab/trimtab/internal/loopback"
)

// BenchmarkLoadgen says what the load itself costs: CPU time of this process
// per request, at 500 requests per second to a service in another process.
func BenchmarkLoadgen(b *testing.B) {
	const rate = 500
	addr := loopback.Address(b)
	l := &Launcher{Self: self(b)}
	defer l.Close()
	if _, err := l.Start([]string{"--name=a", "--workload=a", "--cpu=0s", "--otlp=127.0.0.1:1", "--listen=" + addr}, 1); err != nil {
		b.Fatal(err)
	}
	if err := awaitReady(b.Context(), addr); err != nil {
		b.Fatal(err)
	}
	g := loadgen.Generator{For: max(time.Second, time.Duration(b.N)*time.Second/rate), Seed: 1, Targets: []loadgen.Target{{
		Name: "a", URL: "http://" + addr + "/", Day: loadgen.Day{Base: rate, Peak: rate, Width: 0.5}, Latency: time.Second}}}
	before := cpuTime(b)
	b.ResetTimer()
	totals, err := g.Run(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(totals[0].Requests), "cpu-µs/request")
	p99, _ := totals[0].Latency.Quantile(0.99)
	b.ReportMetric(p99*1e3, "p99-ms")
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
