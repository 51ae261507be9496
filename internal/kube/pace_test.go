package kube

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestNo20SecondsHaveMoreThan400Requests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pace{every: time.Second / queriesPerSecond, burst: queryBurst}
		time.Sleep(time.Hour) // a pause saves no more than the burst
		var at []time.Time
		for range 2000 {
			if err := p.wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			at = append(at, time.Now())
		}
		for _, window := range []struct {
			long time.Duration
			most int
		}{{time.Second, 39}, {20 * time.Second, 400}, {time.Minute, 1200}} {
			for i, j := 0, 0; j < len(at); j++ {
				for at[j].Sub(at[i]) >= window.long {
					i++
				}
				if j-i+1 > window.most {
					t.Fatalf("%d requests within %v, at most %d may be", j-i+1, window.long, window.most)
				}
			}
		}
		if took := at[len(at)-1].Sub(at[0]); took > 2000*time.Second/queriesPerSecond {
			t.Errorf("2000 requests took %v", took)
		}
	})
}

func TestARequestThatIsGivenUpWaitsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pace{every: time.Minute, burst: 1}
		if err := p.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}
