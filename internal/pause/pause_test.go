package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trimtab/trimtab/internal/pause"
)

func TestAPauseEndsAfterItsTimeOrWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !pause.For(t.Context(), time.Hour) || time.Since(began) != time.Hour {
			t.Errorf("it took %v", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		if pause.For(ctx, time.Hour) || time.Since(began) != time.Minute {
			t.Errorf("with a context that ended it took %v", time.Since(began))
		}
	})
}

func TestTicksThatBeginAtDifferentTimesComeTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every, apart = time.Second, 300 * time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now()
		one := pause.Ticks(ctx, every)
		time.Sleep(apart)
		two := pause.Ticks(ctx, every)
		first := <-one
		if first.Sub(began) > every {
			t.Errorf("the first tick came after %v", first.Sub(began))
		}
		if first.Sub(began) < apart { // before the second began
			first = <-one
		}
		for i := range 3 {
			if at := <-two; !at.Equal(first) {
				t.Errorf("tick %d: the second came %v after the first", i, at.Sub(first))
			}
			next := <-one
			if next.Sub(first) != every {
				t.Errorf("tick %d came after %v, want %v", i, next.Sub(first), every)
			}
			first = next
		}
		cancel()
		time.Sleep(every)
		for range 2 { // one may have been on its way
			select {
			case <-one:
			default:
			}
			time.Sleep(every)
		}
		if len(one) > 0 {
			t.Error("it ticks after the end")
		}
	})
}
