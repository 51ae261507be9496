package analyzer_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
)

func FuzzRestoreIsTotal(f *testing.F) {
	a, err := newAnalyzer()
	if err != nil {
		f.Fatal(err)
	}
	for n := range 3 {
		a.Step(sec(float64(n)+1.6), sketch("w", n, 40, 36))
		a.Step(sec(float64(n)+1.7), nil)
	}
	for _, state := range a.Snapshot() {
		f.Add(state)
	}
	f.Add([]byte("trimtab learn/1 a3c4e8f1\n{}"))
	f.Fuzz(func(t *testing.T, state []byte) {
		b, err := newAnalyzer()
		if err != nil {
			t.Fatal(err)
		}
		if b.Restore("w", state) == nil {
			b.Step(sec(1e6), sketch("w", 1e6-2, 40, 36))
		}
		for _, v := range b.Step(sec(1e6+1), nil) {
			if err := v.Validate(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzStepIsTotal feeds values that passed the border, with any numbers.
func FuzzStepIsTotal(f *testing.F) {
	f.Add([]byte(`{"workload":"w","quantity":"load","source":"prometheus","time":"2023-11-14T22:13:21Z","value":1e300}`), uint8(0))
	f.Add([]byte(`{"workload":"w","partition":0,"from":"2023-11-14T22:13:20Z","to":"2023-11-14T22:13:21Z","requests":1e308,"spans":1,"latency":{"sum":0},"under":1e308}`), uint8(1))
	f.Add([]byte(`{"host":"h","time":"2023-11-14T22:13:20Z","targets":[{"host":"h","workload":"w","resource":"cpu","now":1e308,"since":"0001-01-01T00:00:00Z"}]}`), uint8(2))
	f.Add([]byte(`{"host":"h","time":"2023-11-14T22:13:21Z","targets":[{"host":"h","workload":"w","instance":"a","resource":"cpu","now":1e308,"max":1e308,"since":"2023-11-14T22:13:20Z"},{"host":"h","workload":"w","instance":"b","resource":"cpu","now":"unlimited","since":"0001-01-01T00:00:00Z"}]}`), uint8(2))
	f.Add([]byte(`{"pool":"p","host":"i","time":"2023-11-14T22:13:21Z","targets":[{"pool":"p","host":"i","workload":"w","resource":"cpu","now":0,"problem":"x","since":"2023-11-14T22:13:20Z"}]}`), uint8(2))
	f.Add([]byte(`{"workload":"w","host":"h","quantity":"usage","source":"cgroup","time":"2023-11-14T22:13:21Z","window_s":1e300,"value":1e308}`), uint8(0))
	f.Add([]byte(`{"workload":"w","host":"h","quantity":"performance","source":"prometheus","time":"2023-11-14T22:13:21Z","value":1e308,"requests":1e308,"sigma":1e308}`), uint8(0))
	f.Fuzz(func(t *testing.T, b []byte, kind uint8) {
		v := []trimtab.Value{new(trimtab.Sample), new(trimtab.Sketch), new(trimtab.Holding)}[kind%3]
		if json.Unmarshal(b, v) != nil || v.Validate() != nil {
			return
		}
		a, err := newAnalyzer()
		if err != nil {
			t.Fatal(err)
		}
		a.Step(sec(0), holding(0, "w", 2, -60))
		for n := range 4 {
			a.Step(sec(float64(n)+1.6), v)
			a.Step(sec(float64(n)+1.6), &trimtab.Sample{Workload: "w", Host: "i", Quantity: quantity.Load, Source: "cgroup", Time: sec(float64(n) + 1.5), Value: 1e308})
			a.Step(sec(float64(n)+1.6), sketch("w", n, 40, 36))
			for _, e := range a.Step(sec(float64(n)+1.7), nil) {
				if err := e.Validate(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

func BenchmarkTick(b *testing.B) {
	for _, n := range []int{20, 200} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			names := make([]string, n)
			for i := range names {
				names[i] = fmt.Sprintf("w%03d", i)
			}
			a, err := newAnalyzer(names...)
			if err != nil {
				b.Fatal(err)
			}
			for _, name := range names {
				h := holding(0, name, 2, -60)
				h.Host = name
				a.Step(sec(0), h)
			}
			b.ReportAllocs()
			for i := range b.N {
				for k, name := range names {
					a.Step(sec(float64(i)+1.6), sketch(name, i, 40+float64((i+k)%9), 36))
				}
				a.Step(sec(float64(i)+1.7), nil)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "us/workload")
		})
	}
}
