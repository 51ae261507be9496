package signals

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/perf"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/quantity"
)

// says lets the collectors tell one round of the service.
func says(s *Set, now time.Duration, values map[quantity.Quantity]float64) {
	for q, v := range values {
		s.Add(now-Settled, &trimtab.Sample{Workload: "shop", Host: "h", Quantity: q, Source: "perf", Time: time.Unix(0, int64(now)), Window: 1, Value: v})
	}
}

func TestWaitingTakesThePlaceOfCountersThatDoNotCountAndLatencySpeaksForItself(t *testing.T) {
	s, now := New([]Service{{Workload: "shop", Cores: 1, SLO: 200 * time.Millisecond}}), 1000*time.Second
	for i := range 12 {
		says(s, now, map[quantity.Quantity]float64{quantity.RunDelay: 0.01 + 0.001*float64(i%3), quantity.TaskClock: 1, quantity.Throttled: 0})
		now += time.Second
		s.Observe(now, 0)
	}
	says(s, now, map[quantity.Quantity]float64{quantity.RunDelay: 0.4, quantity.TaskClock: 1})
	tail := 0.3
	s.heard(now, &colocation.Contributions{Workload: "shop", Window: 1, Tail: &tail})
	s.heard(now, &colocation.Contributions{Workload: "nobody", Window: 1, Tail: &tail})
	all := s.Observe(now+time.Second, 0)
	if len(all) != 1 || all[0].Workload != "shop" || all[0].Cores != 1 || len(all[0].Samples) != 2 {
		t.Fatalf("%+v", all)
	}
	for i, want := range []string{Delay, Latency} {
		if v := all[0].Samples[i]; v.Signal != want || v.Value <= v.Boundary {
			t.Errorf("%+v, want %s over its boundary", v, want)
		}
	}
	if v := all[0].Samples[0]; v.Boundary > 1.2 || v.Boundary < 1.02 {
		t.Errorf("boundary %v of what waited for 1%%", v.Boundary)
	}
	if cpi, mpki := s.Means(now, ""); cpi != nil || mpki != nil {
		t.Error("what was not counted is told")
	}
}

func TestAServiceThatDoesNothingIsNotDisturbed(t *testing.T) {
	s, now := New([]Service{{Workload: "shop", Cores: 1, SLO: 200 * time.Millisecond}}), 1000*time.Second
	s.Add(now, &trimtab.Sample{Workload: "shop", Instance: "1", Quantity: quantity.RunDelay, Time: time.Unix(1, 0), Missing: perf.Idle})
	all := s.Observe(now+time.Second, 0)
	if len(all) != 1 || len(all[0].Samples) != 1 || all[0].Samples[0].Signal != "run-queue delay of 1" || all[0].Samples[0].Value >= all[0].Samples[0].Boundary {
		t.Errorf("%+v", all)
	}
}

func TestAServiceIsLearnedOnlyWhileNoTaskRuns(t *testing.T) {
	s, now := New([]Service{{Workload: "shop", Cores: 1, SLO: 200 * time.Millisecond}}), 1000*time.Second
	for range 20 {
		says(s, now, map[quantity.Quantity]float64{quantity.CPI: 1, quantity.TaskClock: 1})
		now += time.Second
		if all := s.Observe(now, now); len(all[0].Samples) != 0 {
			t.Fatalf("%+v", all)
		}
	}
	if n := s.models[modelID{copyID{"shop", ""}, CPI}].FalseAlarms().Judged; n != 0 {
		t.Errorf("%d windows", n)
	}
}
