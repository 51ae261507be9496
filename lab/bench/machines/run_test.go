package machines

import (
	"context"
	"errors"
	"testing"

	"github.com/trimtab/trimtab"
)

func TestARunMeasuresEverything(t *testing.T) {
	for _, n := range []int{1, 2, 1000} {
		said, asked := 0, 0
		r, err := Run(t.Context(), Options{
			Machines: n, Samples: 40, Managers: 10, Repeat: 2, Seed: 1, Progress: func(string) { said++ },
			Level: func(w []float64) (float64, error) { asked = len(w); return w[0], nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Machines != n || r.Samples != 40 || !(r.FilterSeconds > 0 && r.UpdateSeconds > 0) || r.LLASecondsPerMachine == nil || asked != 40 || said == 0 {
			t.Errorf("%+v", r)
		}
		if r.FirstSyncBytes <= r.LaterSyncBytes || r.LaterSyncBytes <= 0 || r.LaterSyncBytes%10 != 0 {
			t.Errorf("first sync %d bytes, later %d", r.FirstSyncBytes, r.LaterSyncBytes)
		}
		if n == 1000 && r.Candidates != 100 {
			t.Errorf("%d candidates of 1000", r.Candidates)
		}
	}
}

func TestWhatCannotBeMeasuredIsRefused(t *testing.T) {
	good := Options{Machines: 1, Samples: 1, Repeat: 1}
	for k, change := range []func(*Options){
		func(o *Options) { o.Machines = 0 }, func(o *Options) { o.Machines = 1 << 30 }, func(o *Options) { o.Samples = 0 },
		func(o *Options) { o.Samples = 1 << 40 }, func(o *Options) { o.Managers = -1 }, func(o *Options) { o.Repeat = 0 },
	} {
		o := good
		change(&o)
		if _, err := Run(t.Context(), o); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("case %d: %v", k, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, good); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	failing := good
	failing.Level = func([]float64) (float64, error) { return 0, trimtab.ErrUnsupported }
	if _, err := Run(t.Context(), failing); !errors.Is(err, trimtab.ErrUnsupported) {
		t.Error(err)
	}
}
