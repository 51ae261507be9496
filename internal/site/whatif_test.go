package site

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/whatif"
)

// known is a console that was told of a shop's services, each with so many cores.
func known(t testing.TB, cfg *config.Config, now time.Time, has float64) *view.Model {
	t.Helper()
	v := view.New(viewConfig(cfg))
	h := &trimtab.Holding{Pool: cfg.Pool.Name, Host: "h", Time: now, LeaseLeft: 60, Capacity: map[string]float64{"cpu": cfg.Pool.Capacity()}}
	for i := range cfg.Workloads {
		name := cfg.Workloads[i].Name
		h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: h.Pool, Host: h.Host, Workload: name, Resource: "cpu"}, Knob: "test",
			Now: trimtab.Units(has), Baseline: trimtab.Units(has), Since: now, Min: 0.1, Max: cfg.Pool.Capacity()})
		c := &trimtab.Curve{Load: 10, Level: 0.9}
		for k := range 20 {
			a := float64(k+1) / 4
			p := min(1, a/(1.5+float64(i%3)))
			c.Knots = append(c.Knots, trimtab.Knot{Allocation: a, Band: trimtab.Band{Lower: 0.95 * p, Mean: p, Upper: min(1, 1.05*p)}})
		}
		v.Observe(&trimtab.Estimate{Workload: name, Time: now, Curve: c, Model: "test/1", Reports: 9, Latency: map[string]trimtab.Seconds{"p50": .03, "p95": .09, "p99": .15}})
	}
	v.Observe(h)
	return v
}

func TestAWhatIfIsAnsweredFromWhatTheConsoleKnows(t *testing.T) {
	cfg := shopWith(t, "objective: resource-fair")
	now := time.Now()
	v := known(t, cfg, now, 2)
	for _, c := range []struct {
		change    whatif.Change
		gain, pay string
	}{
		{whatif.Change{}, "", ""},
		{whatif.Change{Capacity: map[string]float64{"cpu": 2.2}}, "", "api web"},
		{whatif.Change{Capacity: map[string]float64{"cpu": 3}, Weight: map[string]float64{"shop": 0.5}}, "", "api web"},
	} {
		got, err := WhatIf(cfg, v, c.change, now)
		if err != nil {
			t.Fatalf("%+v: %v", c.change, err)
		}
		if got.Pay == 0 != (c.pay == "") || got.Gain == 0 != (c.gain == "") {
			t.Errorf("%+v: %+v", c.change, got)
		}
		if len(got.Workloads) != 2 || !got.Workloads[0].Share {
			t.Errorf("%+v: %+v", c.change, got.Workloads)
		}
	}
	if w := cfg.Workloads[0]; w.Weight != 3 || cfg.Pool.CPU != 8 || w.SLO.Fraction != 0.9 || w.SLO.Latency != 100*time.Millisecond {
		t.Errorf("a question changed the configuration: %+v", w)
	}
}

func TestAnSLOIsChangedAsPeopleWriteIt(t *testing.T) {
	cfg := shopWith(t, "objective: social")
	now := time.Now()
	v := known(t, cfg, now, 2)
	for text, want := range map[string]float64{"95%": .95, "0.5": .5, "50ms": .9} {
		got, err := WhatIf(cfg, v, whatif.Change{SLO: map[string]string{"web": text}}, now)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for _, w := range got.Workloads {
			if w.Workload == "web" && w.After.SLO != want {
				t.Errorf("%s: SLO %v", text, w.After.SLO)
			}
		}
		if (len(got.Assumes) == 1) != (text == "50ms") {
			t.Errorf("%s: assumes %q", text, got.Assumes)
		}
	}
	for _, c := range []whatif.Change{
		{SLO: map[string]string{"web": "soon"}}, {SLO: map[string]string{"web": "120%"}}, {SLO: map[string]string{"web": "-5ms"}}, {SLO: map[string]string{"nobody": "95%"}},
		{Weight: map[string]float64{"web": -1}}, {Weight: map[string]float64{"nobody": 1}}, {Weight: map[string]float64{"": 1}},
		{Capacity: map[string]float64{"gpu": 1}}, {Capacity: map[string]float64{"cpu": 0}},
	} {
		if got, err := WhatIf(cfg, v, c, now); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
}

// BenchmarkWhatIf is one answer from the read model of a console, for a pool that
// does not hold what is needed: ms an answer.
func BenchmarkWhatIf(b *testing.B) {
	for _, n := range []int{100, 1000} {
		for _, objective := range []string{"njc", "egalitarian", "social", "nash"} {
			b.Run(fmt.Sprintf("%s/%d", objective, n), func(b *testing.B) {
				text := fmt.Sprintf("objective: %s\npool: {cpu: %d}\nworkloads:\n", objective, 3*n)
				for i := range n {
					text += fmt.Sprintf("  - {name: w%04d, slo: {latency: 100ms, fraction: 0.9}, knob: {cgroup: w%04d, cpu: {min: 0.1}}}\n", i, i)
				}
				cfg, err := config.Parse("shop.yaml", []byte(text))
				if err != nil {
					b.Fatal(err)
				}
				now := time.Now()
				v := known(b, cfg, now, 2)
				change := whatif.Change{Capacity: map[string]float64{"cpu": float64(n)}, SLO: map[string]string{"w0001": "95%"}, Weight: map[string]float64{"w0002": 2}}
				for b.Loop() {
					if _, err := WhatIf(cfg, v, change, now); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/answer")
			})
		}
	}
}
