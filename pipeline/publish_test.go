package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/bustest"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/internal/pause"
)

// slow takes a tenth of a second for each publication of an output.
type slowBus struct{ bus.Bus }

func (s slowBus) Publish(ctx context.Context, v trimtab.Value) error {
	if v.Kind() != trimtab.KindAlert {
		pause.For(ctx, 100*time.Millisecond)
	}
	return s.Bus.Publish(ctx, v)
}

func estimate(workload, model string) *trimtab.Estimate {
	return &trimtab.Estimate{Workload: workload, Model: model, Time: time.Unix(1, 0)}
}

// published runs a step that answers an alert with out, and returns how long
// it took until all of it was on the bus.
func published(t *testing.T, out ...trimtab.Value) (took time.Duration, m *bustest.Memory) {
	t.Helper()
	m = bustest.NewMemory()
	t.Cleanup(func() { m.Close() })
	handled := make(chan struct{})
	stop := start(t, Stage{Name: "s", Bus: slowBus{m}, Consumes: consumes(trimtab.KindAlert),
		Step: stepFunc(func(_ time.Time, in trimtab.Value) []trimtab.Value {
			if in.(*trimtab.Alert).Name == "last" {
				close(handled)
				return nil
			}
			return out
		})})
	defer stop()
	began := time.Now()
	for _, name := range []string{"first", "last"} {
		if err := m.Publish(t.Context(), alert(name)); err != nil {
			t.Fatal(err)
		}
	}
	<-handled
	return time.Since(began), m
}

func TestEstimatesOfManyWorkloadsArePublishedSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out []trimtab.Value
		for i := range 2000 {
			out = append(out, estimate(fmt.Sprint("w", i), "m"))
		}
		took, m := published(t, out...)
		if most := 100 * time.Millisecond * (2000/sideBySide + 1); took > most {
			t.Errorf("2000 estimates took %v, want at most %v: one after the other they take 200 s", took, most)
		}
		if n := m.Stats().Published[trimtab.KindEstimate]; n != 2000 {
			t.Errorf("%d estimates were published, want 2000", n)
		}
	})
}

func TestValuesOfOneSubjectAndCommandsKeepTheirOrder(t *testing.T) {
	for name, out := range map[string][]trimtab.Value{
		"estimates of one workload": {estimate("w", "1"), estimate("v", "2"), estimate("w", "3")},
		"commands":                  {command("1"), command("2"), command("3")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if took, _ := published(t, out...); took < 300*time.Millisecond {
					t.Errorf("three values took %v: they were not published one after the other", took)
				}
			})
		})
	}
}

func TestAPlanForSeveralHostsTravelsInPartsAndIsWholeForThoseThatLookOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := make([]string, 320)
		plan := &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Last: true, Time: time.Unix(1, 0), Lease: 60, Held: map[string]trimtab.Held{"v": {Code: codes.HeldOld, Text: "why"}}}
		for i := range hosts {
			hosts[i] = fmt.Sprintf("h%03d", i)
			plan.Actions = append(plan.Actions, trimtab.Action{KnobID: trimtab.KnobID{Pool: "p", Host: hosts[i], Workload: "w", Resource: trimtab.CPU}, Mode: trimtab.Act})
		}
		plan.Hosts = hosts
		took, m := published(t, plan)
		if most := 100 * time.Millisecond * time.Duration(1+len(hosts)/sideBySide+1); took > most {
			t.Errorf("a plan for %d hosts took %v, want at most %v", len(hosts), took, most)
		}
		var whole, own []*trimtab.Plan
		stop, err := bus.Follow(t.Context(), m, true, func(v trimtab.Value) { whole = append(whole, v.(*trimtab.Plan)) }, trimtab.KindPlan)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		stop, err = m.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindPart, Key: "p/h007", History: true,
			Handle: func(_ context.Context, d bus.Delivery) error { own = append(own, d.Value.(*trimtab.Plan)); return nil }})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		synctest.Wait()
		if len(whole) != 1 || len(whole[0].Actions) != len(hosts) || len(whole[0].Held) != 1 || whole[0].Pieces != 0 {
			t.Errorf("those that look on see %d plans: %+v", len(whole), whole)
		}
		if len(own) != 1 || len(own[0].Actions) != 1 || own[0].Actions[0].Host != "h007" || own[0].Held != nil {
			t.Errorf("the host reads %+v", own)
		}
	})
}

func TestAStageThatIsStoppedWhileItPublishesSideBySideEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		var out []trimtab.Value
		for i := range 100 {
			out = append(out, estimate(fmt.Sprint("w", i), "m"))
		}
		stop := start(t, Stage{Name: "s", Bus: broken{m}, Consumes: consumes(trimtab.KindAlert),
			Step: stepFunc(func(time.Time, trimtab.Value) []trimtab.Value { return out })})
		if err := m.Publish(t.Context(), alert("1")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		stop()
	})
}

// broken stores no estimate.
type broken struct{ bus.Bus }

func (b broken) Publish(ctx context.Context, v trimtab.Value) error {
	if v.Kind() == trimtab.KindEstimate {
		return fmt.Errorf("store: %w", context.DeadlineExceeded)
	}
	return b.Bus.Publish(ctx, v)
}

func TestOnlyTheLastValuesOfDifferentSubjectsAreUnordered(t *testing.T) {
	var wrong []string
	for _, c := range []struct {
		want bool
		out  []trimtab.Value
	}{
		{true, []trimtab.Value{estimate("a", ""), estimate("b", "")}},
		{false, []trimtab.Value{estimate("a", ""), estimate("a", "")}},
		{false, []trimtab.Value{estimate("a", ""), command("b")}},
		{false, []trimtab.Value{estimate("a", ""), nil}},
		{false, []trimtab.Value{estimate("a", "")}},
	} {
		if unordered(c.out) != c.want {
			wrong = append(wrong, fmt.Sprint(c.out))
		}
	}
	if slices.Sort(wrong); len(wrong) > 0 {
		t.Error(strings.Join(wrong, "\n"))
	}
}

// endingBus no longer waits for anything.
type endingBus struct{ bus.Bus }

func (e endingBus) Publish(ctx context.Context, v trimtab.Value) error {
	if v.Kind() == trimtab.KindAlert {
		return e.Bus.Publish(ctx, v)
	}
	return fmt.Errorf("store: %w", bus.ErrEnding)
}

func TestAStageDoesNotTryAgainWhenTheProcessMayWaitNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		tried := make(chan struct{})
		stop := start(t, Stage{Name: "s", Bus: endingBus{m}, Consumes: consumes(trimtab.KindAlert),
			Step: stepFunc(func(time.Time, trimtab.Value) []trimtab.Value {
				close(tried)
				return []trimtab.Value{estimate("w", "m")}
			})})
		if err := m.Publish(t.Context(), alert("a")); err != nil {
			t.Fatal(err)
		}
		<-tried
		began := time.Now()
		stop()
		if took := time.Since(began); took > 0 {
			t.Errorf("the stage ended after %v", took)
		}
	})
}
