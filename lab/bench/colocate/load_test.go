package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// stall is a service that answers after Took, and to nobody before Until.
type stall struct {
	began       time.Time
	Took, Until time.Duration
}

func (s *stall) do(ctx context.Context) (answer, error) {
	at := time.Now()
	select {
	case <-time.After(max(s.Took, s.Until-at.Sub(s.began))):
		return answer{at, time.Now()}, nil
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}

func play(s *stall, at []time.Duration) (out []outcome) {
	s.began = time.Now()
	return generate(context.Background(), s, s.began, at, func(time.Time, *outcome) {})
}

func every(d time.Duration, n int) (at []time.Duration) {
	for i := range n {
		at = append(at, time.Duration(i)*d)
	}
	return at
}

func TestARequestIsSentAtItsTimeThoughNoneWasAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := play(&stall{Took: 4 * time.Second}, every(10*time.Millisecond, 100))
		for i := range out {
			if o := &out[i]; o.Lag != 0 || o.Took != 4*time.Second || o.Failed {
				t.Fatalf("request %d: %+v", i, o)
			}
		}
	})
}

func TestTheTimeOfAStallCountsForEveryRequestThatWasMeantToBeSentInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := play(&stall{Took: time.Millisecond, Until: time.Second}, every(10*time.Millisecond, 200))
		for i := range out {
			want := max(time.Millisecond, time.Second-out[i].At)
			if out[i].Took != want {
				t.Fatalf("request at %v took %v, want %v", out[i].At, out[i].Took, want)
			}
		}
	})
}

func TestOneThatGetsNoAnswerInTimeHasFailedAndTookAsLongAsClientsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := play(&stall{Took: time.Minute}, every(time.Second, 3))
		for i := range out {
			if o := &out[i]; !o.Failed || o.Took != patience || o.met(time.Hour) {
				t.Errorf("request %d: %+v", i, o)
			}
		}
		if p := quantile(out, 0.5); p != 5000 {
			t.Errorf("median %v ms", p)
		}
	})
}

func TestWhatIsLeftWhenTheLoadIsCutOffCountsAsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeoutCause(context.Background(), 1500*time.Millisecond, errors.New("cut off"))
		defer stop()
		out := generate(ctx, &stall{Took: time.Millisecond, began: time.Now()}, time.Now(), every(time.Second, 4), func(time.Time, *outcome) {})
		if sent, met := count(out, time.Second, 0, time.Minute); sent != 2 || met != 2 {
			t.Errorf("%d sent, %d in time", sent, met)
		}
	})
}

func TestAPeriodHoldsTheSLOWithNinetyNineOfAHundred(t *testing.T) {
	if !held(99, 99) || !held(100, 99) || held(99, 98) || !held(0, 0) {
		t.Errorf("%t %t %t %t", held(99, 99), held(100, 99), held(99, 98), held(0, 0))
	}
}
