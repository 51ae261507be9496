package natsbus

import (
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/topic"
)

// BenchmarkIdle reports what a bus costs that has the subscriptions of a
// whole pipeline and nothing to do. Run it alone: -benchtime 1x.
func BenchmarkIdle(b *testing.B) {
	began := time.Now()
	m, err := Open(b.Context(), Config{Dir: b.TempDir(), Source: "idle"})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	b.ReportMetric(time.Since(began).Seconds()*1e3, "open-ms")
	for _, k := range topic.All() {
		if k.Delivery == topic.Local {
			continue
		}
		for range 2 {
			if _, err := m.Subscribe(b.Context(), bus.Subscription{Kind: k.Kind, Handle: func(context.Context, bus.Delivery) error { return nil }}); err != nil {
				b.Fatal(err)
			}
		}
	}
	const d = 10 * time.Second
	for range b.N {
		before := cpu(b)
		<-time.After(d)
		b.ReportMetric(100*(cpu(b)-before).Seconds()/d.Seconds(), "%core")
	}
	b.ReportMetric(resident(b), "MiB")
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func resident(b *testing.B) float64 {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(raw))[1])
	if err != nil {
		b.Fatal(err)
	}
	return float64(pages*os.Getpagesize()) / mib
}
