package admission

import (
	"testing"
	"time"
)

// admissions renews an envelope every step for d, with a request waiting all the time, and returns
// how many are admitted.
func admissions(rate float64, step, d time.Duration) (n int) {
	c := New(Settings{Within: time.Hour, Classes: 1})
	decide := func(v Verdict) {
		if v == Admitted {
			n++
		}
	}
	for now := time.Duration(0); now <= d; now += step {
		c.SetEnvelope(now, Envelope{Rate: rate, Until: now + time.Minute})
		for c.queued < 10 {
			if c.Arrive(now, &Ticket{Decide: decide}) == Admitted {
				n++
			}
		}
		c.Tick(now)
	}
	return n
}

func TestARateThatIsRenewedOftenAdmitsNoMore(t *testing.T) {
	for _, step := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond} {
		if n := admissions(5, step, 10*time.Second); n < 50 || n > 51 {
			t.Errorf("renewed every %v: %d admitted in 10 s at 5/s", step, n)
		}
	}
}

func TestAnEnvelopeThatEndedIsNotContinued(t *testing.T) {
	c := New(Settings{Within: time.Hour, Classes: 1})
	c.SetEnvelope(0, Envelope{Rate: 1, Until: time.Second})
	for range 2 {
		c.Arrive(0, &Ticket{Decide: func(Verdict) {}})
	}
	if c.queued != 1 {
		t.Fatal(c.queued)
	}
	c.SetEnvelope(2*time.Second, Envelope{Rate: 0.001, Until: time.Hour})
	if c.queued != 0 {
		t.Errorf("%d wait: nothing was bounded for a second", c.queued)
	}
}
