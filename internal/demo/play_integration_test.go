//go:build integration

package demo

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

// oracle is a pipeline that knows the day: each second it gives every service
// its load over the target utilisation, and shares what is left in proportion.
type oracle struct {
	setup *Setup
	place *CgroupPlace
	day   time.Duration
	sink  *sink

	stop   context.CancelFunc
	ended  sync.WaitGroup
	rounds int
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
	loads := make([]float64, len(o.setup.Services))
	sum := 0.0
	for i, s := range o.setup.Services {
		for _, ahead := range []time.Duration{0, time.Second, 2 * time.Second} {
			x := min(1, (at + ahead).Seconds()/o.day.Seconds())
			// Rates are sized in shares of the pool, so this is the need.
			k := kinds()[i]
			loads[i] = max(loads[i], s.Day.Rate(x)/s.Day.Peak*k.peak)
		}
		sum += loads[i]
	}
	values := make([]float64, len(loads))
	for i := range loads {
		values[i] = float64(int(loads[i]/sum*o.setup.Capacity*100)) / 100
	}
	for _, grow := range []bool{false, true} {
		for i, s := range o.setup.Services {
			if now, err := o.place.Read(ctx, s); err == nil && (values[i] > now) == grow {
				_ = o.place.Set(ctx, s, values[i])
			}
		}
	}
	o.rounds++
}

func (o *oracle) Rounds() int { return o.rounds }

func (o *oracle) Close() error {
	if o.stop != nil {
		o.stop()
	}
	o.ended.Wait()
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
	length := time.Minute
	if s := os.Getenv("TRIMTAB_DEMO_FOR"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		length = d
	}
	if p, err := OpenCgroup(&Launcher{}); err != nil {
		t.Skipf("no writable cgroup hierarchy: %v", err)
	} else if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	var o *oracle
	report, err := Run(t.Context(), Config{
		For: length, Knob: KnobCgroup, Self: self(t), Seed: 7, Stderr: os.Stderr, Screen: &Screen{Out: os.Stdout}, Report: t.TempDir() + "/report.json",
		Start: func(_ context.Context, s *Setup, place Place) (Pipeline, error) {
			spans, _ := openSink(t, s.OTLP)
			o = &oracle{setup: s, place: place.(*CgroupPlace), day: length / 2, sink: spans}
			return o, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Phases) != 2 || !report.Restored || report.MaxAllocatedSum > report.Capacity+1e-9 {
		t.Errorf("report %+v", report)
	}
	o.sink.read(func() {
		for _, s := range o.setup.Services {
			h := o.sink.latency[s.Name]
			p50, _ := h.Quantile(0.5)
			p95, _ := h.Quantile(0.95)
			below, _ := h.FractionBelow(s.SLO.Latency.Seconds())
			t.Logf("spans of %s: %v entry spans, p50 %.0f ms, p95 %.0f ms, below SLO %.3f", s.Name, h.Count(), p50*1e3, p95*1e3, below)
		}
		t.Logf("spans by service: %v", o.sink.services)
	})
}
