package pipeline

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trimtab/trimtab/bus/bustest"
)

func TestOneOfManyDoesWhatIsDoneAloneAndAnotherGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		var running [3]atomic.Int32
		var most, sum atomic.Int32
		begin := func(i int) (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			a := Alone{Bus: m, Bucket: "analyzers", Key: "p/learn", Holder: string(rune('a' + i)), What: "learn", Logger: slog.New(slog.DiscardHandler), Ready: func(string) {}}
			go func() {
				defer close(done)
				if err := a.Run(ctx, func(ctx context.Context) error {
					running[i].Add(1)
					most.Store(max(most.Load(), sum.Add(1)))
					<-ctx.Done()
					running[i].Add(-1)
					sum.Add(-1)
					return nil
				}); err != nil {
					t.Error(err)
				}
			}()
			return func() { cancel(); <-done }
		}
		first := begin(0)
		time.Sleep(time.Second)
		second, third := begin(1), begin(2)
		time.Sleep(time.Minute)
		if running[0].Load() != 1 || sum.Load() != 1 {
			t.Fatalf("%d run, want the first alone", sum.Load())
		}
		first() // gives up: another follows at once
		time.Sleep(3 * time.Second)
		if running[0].Load() != 0 || sum.Load() != 1 {
			t.Fatalf("%d run after the first one ended", sum.Load())
		}
		if running[1].Load() == 1 {
			second()
		} else {
			third()
		}
		time.Sleep(3 * time.Second)
		if sum.Load() != 1 || most.Load() != 1 {
			t.Errorf("%d run, at most %d at a time", sum.Load(), most.Load())
		}
		second()
		third()
	})
}

func TestAHolderThatCannotRenewItsLockStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		var running atomic.Int32
		said := make(chan string, 1000)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			a := Alone{Bus: m, Bucket: "analyzers", Key: "p/learn", Holder: "a", What: "learn of pool p", Logger: slog.New(slog.DiscardHandler), Ready: func(r string) { said <- r }}
			if err := a.Run(ctx, func(ctx context.Context) error {
				running.Add(1)
				<-ctx.Done()
				running.Add(-1)
				return nil
			}); err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(time.Second)
		if running.Load() != 1 {
			t.Fatal("it does not run")
		}
		// Another one has written the key meanwhile.
		b, err := m.Bucket(t.Context(), "analyzers")
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if _, err := b.Put(t.Context(), "p/learn", []byte(`{"holder":"b","instance":1,"epoch":9,"term_s":6}`)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if running.Load() != 0 || <-said != "" {
			t.Error("it goes on without its lock, or says that standing by is a fault")
		}
		cancel()
		<-done
	})
}
