//go:build integration

package demo

import (
	"context"
	"fmt"
	"math"
	"os"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

// oracle is a pipeline that knows the day: each second it gives every service
// the share that makes all equally busy.
type oracle struct {
	setup *Setup
	place turned
	day   time.Duration
	sink  *sink

	stop   context.CancelFunc
	ended  sync.WaitGroup
	rounds int
	used   []float64 // CPU seconds by service
}

// cpuUsed sums the CPU time of a group's processes, in seconds.
func cpuUsed(dir string) float64 {
	pids, _ := os.ReadFile(path.Join(dir, "cgroup.procs"))
	sum := 0.0
	for _, pid := range strings.Fields(string(pids)) {
		threads, _ := os.ReadDir(path.Join("/proc", pid, "task"))
		for _, t := range threads {
			stat, _ := os.ReadFile(path.Join("/proc", pid, "task", t.Name(), "schedstat"))
			var ns float64
			_, _ = fmt.Sscan(string(stat), &ns)
			sum += ns / 1e9
		}
	}
	return sum
}

func (o *oracle) SetMode(ctx context.Context, m trimtab.Mode) error {
	if m != trimtab.Act {
		return nil
	}
	ctx, o.stop = context.WithCancel(ctx)
	begin := time.Now()
	o.ended.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			o.round(ctx, time.Since(begin))
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return nil
}

func (o *oracle) round(ctx context.Context, at time.Duration) {
	n := len(o.setup.Services)
	loads, values := make([]float64, n), make([]float64, n)
	left := o.setup.Capacity
	for i, s := range o.setup.Services {
		for _, ahead := range []time.Duration{0, time.Second, 2 * time.Second} {
			x := min(1, (at+ahead).Seconds()/o.day.Seconds())
			// Rates are sized in shares of the pool, so this is the need.
			k := kinds(o.setup.Knob)[i]
			loads[i] = max(loads[i], s.Day.Rate(x)/s.Day.Peak*k.peak)
		}
		values[i] = s.Min
		left -= s.Min
	}
	// Unit by unit to whoever is busiest.
	for ; left >= o.setup.Unit; left -= o.setup.Unit {
		busiest := 0
		for i := range loads {
			if loads[i]/values[i] > loads[busiest]/values[busiest] {
				busiest = i
			}
		}
		values[busiest] += o.setup.Unit
	}
	for _, grow := range []bool{false, true} {
		for i, s := range o.setup.Services {
			if now, err := o.place.Read(ctx, s); err == nil && math.Abs(values[i]-now) > 1e-9 && (values[i] > now) == grow {
				_ = o.place.Set(ctx, s, values[i])
			}
		}
	}
	o.rounds++
}

func (o *oracle) Rounds() int { return o.rounds }

func (o *oracle) Page() string { return "" }

func (o *oracle) Close() error {
	if o.stop != nil {
		o.stop()
	}
	o.ended.Wait()
	for _, s := range o.setup.Services {
		o.used = append(o.used, cpuUsed(path.Join(o.setup.Root, s.Handle)))
	}
	for _, grow := range []bool{false, true} {
		for _, s := range o.setup.Services {
			if now, err := o.place.Read(context.Background(), s); err == nil && (s.Equal > now) == grow {
				_ = o.place.Set(context.Background(), s, s.Equal)
			}
		}
	}
	return nil
}

// TestSharesThatFollowTheLoadMeetWhatEqualSharesMiss reports how good the
// shares were; the structure is what it asserts.
func TestSharesThatFollowTheLoadMeetWhatEqualSharesMiss(t *testing.T) {
	for _, knob := range []string{KnobProcess, KnobCgroup} {
		t.Run(knob, func(t *testing.T) { playOracle(t, knob) })
	}
}

func playOracle(t *testing.T, knob string) {
	length := time.Minute
	if s := os.Getenv("TRIMTAB_DEMO_FOR"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		length = d
	}
	if knob == KnobCgroup {
		p, err := openCgroup(&Launcher{})
		if err != nil {
			t.Skipf("no writable cgroup hierarchy: %v", err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var o *oracle
	phases := 2
	if knob == KnobCgroup {
		phases = 3
	}
	report, err := Run(t.Context(), Config{
		For: length, Knob: knob, Self: self(t), Seed: 7, Stderr: os.Stderr, Screen: &Screen{Out: os.Stdout}, Report: t.TempDir() + "/report.json",
		Start: func(ctx context.Context, s *Setup) (Pipeline, error) {
			spans, _ := openSink(t, s.OTLP)
			o = &oracle{setup: s, place: knobsOf(t, s), day: length / time.Duration(phases), sink: spans}
			return o, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Phases) != phases || !report.Restored || report.MaxAllocatedSum > report.Capacity+1e-9 {
		t.Errorf("report %+v", report)
	}
	o.sink.read(func() {
		for i, s := range o.setup.Services {
			e := o.sink.entries[s.Name]
			p50, _ := e.latency.Quantile(0.5)
			p95, _ := e.latency.Quantile(0.95)
			var ok, all, cost float64
			for _, p := range report.Phases {
				all += float64(p.Services[i].Requests)
				ok += p.Services[i].SLOAttained * float64(p.Services[i].Requests)
			}
			for _, c := range s.Components {
				cost += c.CPU.Mean.Seconds() * 1e3
			}
			t.Logf("%s: %.2f ms of CPU per request, %.2f ms of it asked for (call back apart)", s.Name, o.used[i]/e.latency.Count()*1e3, cost)
			t.Logf("%s: %v entry spans of %v requests, p50 %.0f ms, p95 %.0f ms, within SLO %.3f by spans, %.3f by client", s.Name, e.latency.Count(), all, p50*1e3, p95*1e3, e.within(s.SLO.Latency), ok/all)
		}
		t.Logf("spans by service: %v", o.sink.services)
	})
}
