package pipeline

import (
	"context"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/internal/metric"
)

type stepFunc func(now time.Time, in trimtab.Value) []trimtab.Value

func (f stepFunc) Step(now time.Time, in trimtab.Value) []trimtab.Value { return f(now, in) }

func TestThin(t *testing.T) {
	b, err := natsbus.Open(t.Context(), natsbus.Config{Dir: t.TempDir(), Source: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	set := metric.NewSet()
	got := make(chan string, 100)
	g := &Group{Metrics: set}
	g.AddStage(Stage{Name: "a", Bus: b, Metrics: set, Consumes: []bus.Subscription{{Kind: trimtab.KindAlert}}, Leader: &Leader{Pool: "p"},
		Step: stepFunc(func(now time.Time, in trimtab.Value) []trimtab.Value {
			switch v := in.(type) {
			case *trimtab.Leader:
				return []trimtab.Value{&trimtab.Command{Pool: "p", Verb: trimtab.Round, Time: now, By: trimtab.PlanID(v.Epoch, 1)}}
			case *trimtab.Alert:
				return []trimtab.Value{&trimtab.Command{Pool: "p", Verb: trimtab.Round, Time: now, By: v.Workload}}
			}
			return nil
		})})
	g.AddStage(Stage{Name: "b", Bus: b, Metrics: set, Consumes: []bus.Subscription{{Kind: trimtab.KindCommand}},
		Step: stepFunc(func(now time.Time, in trimtab.Value) []trimtab.Value { got <- in.(*trimtab.Command).By; return nil })})
	g.Add(CountBus(b, set))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- g.Run(ctx) }()
	t.Log(<-got, g.Ready())
	if err := b.Publish(ctx, &trimtab.Alert{Workload: "w", Name: "x", Time: time.Now()}); err != nil {
		t.Fatal(err)
	}
	t.Log(<-got, g.Ready())
	cancel()
	t.Log(<-done, g.Ready())
}
