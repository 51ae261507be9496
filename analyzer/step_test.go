package analyzer_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/pipeline/steptest"
	"github.com/trimtab/trimtab/quantity"
)

func TestTheAnalyzerMeetsTheContractOfSteps(t *testing.T) {
	each := config("a", "b")
	each.Workloads[1].LoadFrom, each.Workloads[1].PerformanceFrom = analyzer.FromPrometheus, analyzer.FromPrometheus
	each.Workloads[1].Queue, each.Workloads[1].Fallback.Proxy = true, true
	joint := config("a", "b")
	joint.Entry = "a"
	for name, c := range map[string]analyzer.Config{"EachForItself": each, "OneApplication": joint} {
		t.Run(name, func(t *testing.T) {
			steptest.Run(t, steptest.Suite{
				New:     func() trimtab.Step { return make1(t, c) },
				Live:    live,
				Repeats: []trimtab.Kind{trimtab.KindHolding},
				Foreign: func(t *rapid.T, now time.Time) trimtab.Value {
					n := int(now.Sub(start) / time.Second)
					elsewhere := holding(float64(n), "x", 2, -60)
					elsewhere.Host, elsewhere.Targets[0].Host = "h2", "h2"
					return rapid.SampledFrom([]trimtab.Value{
						sketch("x", n, 40, 36), elsewhere, sample("x", quantity.Load, now, 3),
						&trimtab.Plan{Pool: "p", Epoch: 9, Sequence: 1, Step: 1, Time: now, Lease: 1},
						&trimtab.Leader{Pool: "p", Epoch: 9}, &trimtab.SpanFrame{Data: []byte("no frame")},
					}).Draw(t, "foreign")
				},
			})
		})
	}
}

func sample(name string, q quantity.Quantity, at time.Time, v float64) *trimtab.Sample {
	return &trimtab.Sample{Workload: name, Quantity: q, Source: "test", Time: at, Value: v}
}

// live plays a host, the spans of a and the metrics of b.
func live(t *rapid.T, l *steptest.Life) {
	has := map[string]float64{"a": 2, "b": 3}
	since := map[string]float64{"a": -60, "b": -60}
	calm := rapid.Bool().Draw(t, "calm")
	for n := range rapid.IntRange(2, 9).Draw(t, "seconds") {
		at := float64(n)
		for _, name := range []string{"a", "b"} {
			if n > 0 && !calm && rapid.IntRange(0, 5).Draw(t, "moves") == 0 {
				has[name], since[name] = float64(rapid.IntRange(1, 80).Draw(t, "has"))/10, at-0.3
			}
		}
		h := holding(at, "a", has["a"], since["a"])
		h.Targets = append(h.Targets, holding(at, "b", has["b"], since["b"]).Targets...)
		said := []trimtab.Value{h}
		requests := float64(rapid.IntRange(1, 200).Draw(t, "requests"))
		said = append(said, sample("b", quantity.Load, sec(at+1), requests), sample("b", quantity.Usage, sec(at+1), has["b"]*rapid.Float64Range(0, 1).Draw(t, "use")),
			&trimtab.Sample{Workload: "b", Quantity: quantity.Performance, Source: "test", Time: sec(at + 1), Value: rapid.Float64Range(0, 1).Draw(t, "performance"), Requests: requests},
			sample("b", quantity.Throttled, sec(at+1), rapid.Float64Range(0, 1).Draw(t, "throttled")),
			sample("b", quantity.CPI, sec(at+1), rapid.Float64Range(0, 4).Draw(t, "cpi")),
			sample("a", quantity.Usage, sec(at+1), has["a"]/2))
		said = append(said, sketch("a", n, requests, float64(int(requests*rapid.Float64Range(0, 1).Draw(t, "under")))))
		for _, v := range said {
			if calm || rapid.IntRange(0, 9).Draw(t, "lost") > 0 {
				l.Give(sec(at+1.1), v)
			}
		}
		l.Give(sec(at+1.7), nil)
		if calm {
			l.Rest(h)
		}
	}
}
