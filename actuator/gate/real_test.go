package gate_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	knob "github.com/trimtab/trimtab/actuator/gate"
	"github.com/trimtab/trimtab/actuator/knobtest"
	"github.com/trimtab/trimtab/gate"
	"github.com/trimtab/trimtab/internal/proctest"
)

// real runs a gate, whose admin address is url, until stop is called or the test ends.
func real(t *testing.T) (url string, stop func()) {
	t.Helper()
	url = "unix:" + filepath.Join(proctest.SocketDir(t), "gate")
	g, err := gate.Open(t.Context(), gate.Config{
		Listen: "127.0.0.1:0", To: "http://127.0.0.1:9", Workload: "shop", Class: "x-priority=high,low", Within: time.Second, Admin: url,
		Upstream: time.Second, Connections: 10, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	stopped := false
	stop = func() {
		if cancel(); !stopped {
			stopped = true
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	return url, stop
}

func TestARealGateMeetsTheContractOfKnobs(t *testing.T) {
	for _, c := range []knob.Config{{}, {Resource: trimtab.Rate}, {Resource: trimtab.Rate, Class: "low", Exact: true}} {
		knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
			url, stop := real(t)
			c.URL = url
			k, err := knob.Open(c)
			if err != nil {
				t.Fatal(err)
			}
			return knobtest.Fixture{
				Knob: k, Least: 1, Most: 1000, Vanish: stop,
				Reopen: func(undo []byte) (actuator.Knob, error) { return actuator.OrNil(knob.Reopen(undo)) },
			}
		})
	}
}

func TestAPlanBoundsARealGateAndTheEndFreesIt(t *testing.T) {
	url, _ := real(t)
	k, err := knob.Open(knob.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	id := trimtab.KnobID{Workload: "shop", Resource: trimtab.Concurrency}
	a, err := actuator.Open(t.Context(), actuator.Config{
		Host: "h", Pool: "p", Dir: t.TempDir(), Reopen: knob.Kind().Reopen,
		Targets: []actuator.Target{{KnobID: id, Min: 1, Max: 1000, Mode: trimtab.Act, Knob: k}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for n, v := range []float64{40, 12} {
		now := a.Holding().Targets[0]
		o := a.Handle(t.Context(), &trimtab.Plan{
			Pool: "p", Epoch: 1, Sequence: uint64(n + 1), Step: 1, Last: true, Time: time.Now(), Capacity: 2, Lease: 30,
			Actions: []trimtab.Action{{KnobID: now.KnobID, Expect: now.Now, Set: trimtab.Units(v), Mode: trimtab.Act}},
		})
		if len(o.Results) != 1 || o.Results[0].Status != trimtab.Written {
			t.Errorf("%+v", o)
		}
		a.Tick(t.Context())
	}
	if v, err := k.Read(t.Context()); err != nil || v != trimtab.Units(12) {
		t.Errorf("the gate has %v, %v", v, err)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if v, err := k.Read(t.Context()); err != nil || !v.Unlimited {
		t.Errorf("after the end the gate has %v, %v", v, err)
	}
}
