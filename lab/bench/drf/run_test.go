package drf

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"
)

func TestARunMeasuresEverythingAndItsAnswersAreFeasible(t *testing.T) {
	for _, pool := range []Pool{
		{Tenants: 2000, Resources: 300, Mean: 2, SD: 16, Seed: 1},
		{Tenants: 1000, Resources: 50, Mean: 10, SD: 0, Zipf: 1.2, Finite: 0.5, Seed: 2},
		{Tenants: 300, Resources: 1, Mean: 2, SD: 16, Zipf: 1, Finite: 1, Seed: 3},
	} {
		said := 0
		r, err := Run(t.Context(), Options{Pool: pool, Repeat: 1, Deadline: time.Nanosecond, Rounds: true, Progress: func(string) { said++ }})
		if err != nil {
			t.Fatal(err)
		}
		if r.Entries == 0 || said == 0 || r.RoundsSeconds == nil || r.ResidentBytes == 0 {
			t.Errorf("%+v", r)
		}
		if r.MaxOverCapacity > 1e-12 || !(r.Utilization > 0 && r.Utilization <= 1) || *r.RoundsAway > 1e-9 {
			t.Errorf("over %g, utilization %v, away %g", r.MaxOverCapacity, r.Utilization, *r.RoundsAway)
		}
		if d := r.Deadline; d == nil || !d.Stopped || d.MaxOverCapacity > 1e-12 || d.Utilization > r.Utilization {
			t.Errorf("deadline: %+v", d)
		}
	}
}

func TestRowsHaveTheLengthsOfTheTruncatedGaussian(t *testing.T) {
	p := Pool{Tenants: 20000, Resources: 1000, Mean: 2, SD: 16, Seed: 7}
	if mean := float64(p.entries()) / 20000; math.Abs(mean-14.4) > 0.4 {
		t.Errorf("mean %v, want 14.4", mean)
	}
}

func TestWhatCannotBeDrawnIsRefused(t *testing.T) {
	good := Options{Pool: Pool{Tenants: 1, Resources: 1, Mean: 2, SD: 1}, Repeat: 1}
	for k, change := range []func(*Options){
		func(o *Options) { o.Tenants = 0 }, func(o *Options) { o.Resources = -1 }, func(o *Options) { o.Mean = math.NaN() },
		func(o *Options) { o.SD = -1 }, func(o *Options) { o.Zipf = -1 }, func(o *Options) { o.Finite = 2 },
		func(o *Options) { o.Repeat = 0 }, func(o *Options) { o.DeadlinePart = 1 }, func(o *Options) { o.Mean, o.SD = 1, 0 },
		func(o *Options) { o.Tenants, o.Resources = 1, 1<<40 },
	} {
		o := good
		if change(&o); true {
			if _, err := Run(t.Context(), o); err == nil {
				t.Errorf("case %d was taken", k)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, good); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
