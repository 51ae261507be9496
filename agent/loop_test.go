package agent

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/bustest"
)

// traced is a loop that notes what it does.
func traced(log *[]string) *Loop[int, int] {
	note := func(what string) { *log = append(*log, what) }
	return &Loop[int, int]{
		Every: time.Second, SaveEvery: 3 * time.Second,
		Look:   func(context.Context, time.Time) int { note("look"); return 1 },
		Decide: func(_ context.Context, _ time.Time, seen int) int { note("decide"); return seen + 1 },
		Act: func(_ context.Context, _ time.Time, d int) {
			if d == 2 {
				note("act")
			}
		},
		Tell: func(_ context.Context, _ time.Time, d int) {
			if d == 2 {
				note("tell")
			}
		},
		Save: func(context.Context, time.Time) { note("save") },
	}
}

func TestARoundLooksDecidesActsTellsAndSavesInThisOrder(t *testing.T) {
	var log []string
	l := traced(&log)
	now := time.Unix(100, 0)
	l.Round(t.Context(), now)
	if got := strings.Join(log, " "); got != "look decide act tell" {
		t.Errorf("the first round: %s", got)
	}
	log = nil
	l.Round(t.Context(), now.Add(l.SaveEvery))
	if got := strings.Join(log, " "); got != "look decide act tell save" {
		t.Errorf("a round when it is time to save: %s", got)
	}
	log = nil
	l.Round(t.Context(), now.Add(l.SaveEvery+time.Second))
	l.Round(t.Context(), now) // the clock was set back
	if got := strings.Join(log, " "); got != "look decide act tell look decide act tell save" {
		t.Errorf("then: %s", got)
	}
}

func TestALoopGoesRoundAtOnceThenEverySoOftenAndWhenItIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		l := traced(&log)
		began, wake := time.Now(), make(chan struct{}, 1)
		var rounds []time.Duration
		l.Wake, l.Gap, l.Save = wake, 50*time.Millisecond, nil
		l.Took = func(time.Duration) { rounds = append(rounds, time.Since(began)) }
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		time.AfterFunc(1200*time.Millisecond, func() { wake <- struct{}{} })
		if err := l.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if want := []time.Duration{0, time.Second, 1250 * time.Millisecond, 2 * time.Second}; !slices.Equal(rounds, want) {
			t.Errorf("rounds at %v, want %v", rounds, want)
		}
	})
}

// away is a bus that cannot be subscribed to at first.
type away struct {
	bus.Bus
	refuses int
}

func (a *away) Subscribe(ctx context.Context, s bus.Subscription) (func(), error) {
	if a.refuses--; a.refuses >= 0 {
		return nil, errors.New("no server")
	}
	return a.Bus.Subscribe(ctx, s)
}

func TestWhereTheBusCannotBeSubscribedToItIsTriedAgainUntilItCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := bustest.NewMemory()
		defer memory.Close()
		heard := 0
		stop := Listen(t.Context(), &away{memory, 3}, time.Second, slog.New(slog.DiscardHandler), bus.Subscription{Kind: trimtab.KindCommand, Key: "p", Consumer: "c",
			Handle: func(context.Context, bus.Delivery) error { heard++; return nil }})
		time.Sleep(3500 * time.Millisecond)
		if err := memory.Publish(t.Context(), &trimtab.Command{Pool: "p", Verb: trimtab.Pause, Time: time.Now()}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		stop()
		if heard != 1 {
			t.Errorf("heard %d commands", heard)
		}
	})
}
