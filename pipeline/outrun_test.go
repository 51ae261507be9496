package pipeline

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/bustest"
)

func TestALeaderWhoseEpochAForgedPlanOutranTakesAHigherOneWithinATerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		got := collect(t, m, trimtab.KindCommand)
		stop := start(t, Stage{Name: "a", Bus: m, Step: stepFunc(echo), Leader: &Leader{Pool: "p"},
			Consumes: []bus.Subscription{{Kind: trimtab.KindHolding}, {Kind: trimtab.KindOutcome}}})
		defer stop()
		time.Sleep(time.Second)
		// An actuator accepted a forged plan 7-3, and refuses this leader's.
		if err := m.Publish(t.Context(), &trimtab.Holding{Host: "h", Time: time.Now(), Epoch: 7, Sequence: 3}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // a term is 6 s, and a turn an eighth of it
		if g := strings.Join(got(), ","); g != "epoch 1,epoch 8" {
			t.Errorf("got %q, want the next epoch above the one that was accepted", g)
		}
		// A holding with an epoch that no pool can have come to is no reason.
		if err := m.Publish(t.Context(), &trimtab.Holding{Host: "liar", Time: time.Now(), Epoch: 1 << 61}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if g := strings.Join(got(), ","); g != "epoch 1,epoch 8" {
			t.Errorf("got %q, want no change", g)
		}
	})
}
