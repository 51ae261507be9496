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

// rated plays a service that is never busy, and of which so many requests per second come, behind a
// rate. It returns the rate in force at the end.
func rated(r Rate, perSecond float64, d time.Duration) float64 {
	c := New(Settings{Within: 200 * time.Millisecond, Classes: 2})
	var serving []*Ticket
	step := time.Duration(float64(time.Second) / perSecond)
	for now := time.Duration(0); now <= d; now += step {
		for _, t := range serving { // each takes a step
			c.Done(now, t, Answered)
		}
		serving = nil
		t := &Ticket{}
		t.Decide = func(v Verdict) {
			if v == Admitted {
				serving = append(serving, t)
			}
		}
		if r.Until = now + time.Minute; now == 0 {
			c.SetRate(now, All, r)
		}
		if c.Arrive(now, t) == Admitted {
			serving = append(serving, t)
		}
		if now%(100*time.Millisecond) < step {
			c.Tick(now)
		}
	}
	_, inForce, _ := c.Rate(d, All)
	return inForce
}

func TestARateThatIsTooLowIsRaisedWithinASecondAndAnExactOneIsNot(t *testing.T) {
	if got := rated(Rate{PerSecond: 50}, 200, time.Second); got < 70 || got > 75 {
		t.Errorf("%v/s in force, of 50 while 200 come and the service is idle", got)
	}
	if got := rated(Rate{PerSecond: 50, Exact: true}, 200, time.Second); got != 50 {
		t.Errorf("%v/s in force, of exactly 50", got)
	}
	if got := rated(Rate{PerSecond: 50}, 40, 10*time.Second); got != 50 {
		t.Errorf("%v/s in force, of 50 while 40 come", got)
	}
}

func TestARateIsNotRaisedWhileTheServiceIsBusy(t *testing.T) {
	s := setting{processors: 1, mean: 10 * time.Millisecond, constant: true, within: 200 * time.Millisecond, important: 1}
	s.phases = []phase{{10 * time.Second, 2}}
	var o *ours
	w := s.play(func(w *world) gate {
		o = newOurs(Settings{})(w).(*ours)
		o.c.SetRate(0, All, Rate{PerSecond: 98, Until: time.Hour})
		return o
	}, 1)
	if _, got, _ := o.c.Rate(w.now, All); got > 125 {
		t.Errorf("%v/s in force, of a service that answers 100", got)
	}
	if got := w.score(2*time.Second, 10*time.Second, s.capacity(), -1); got.goodput < 0.9 {
		t.Errorf("%+v", got)
	}
}

func TestAClassWithoutTokensHoldsNobodyElseUp(t *testing.T) {
	c := New(Settings{Within: time.Hour, Classes: 2})
	c.SetRate(0, 0, Rate{PerSecond: 0.001, Exact: true, Until: time.Hour})
	wait := func(Verdict) { t.Error("decided") }
	if v := c.Arrive(0, &Ticket{Class: 0}); v != Admitted { // the first token
		t.Error(v)
	}
	if v := c.Arrive(0, &Ticket{Class: 0, Decide: wait}); v != Waiting {
		t.Error(v)
	}
	admitted := 0
	low := &Ticket{Class: 1, Decide: func(v Verdict) { admitted++ }}
	if v := c.Arrive(0, low); v != Admitted && admitted != 1 {
		t.Errorf("%v: the other class waits for a rate that is not its own", v)
	}
}

// A clock that jumps forward is silence of all requests, one that goes back no time at all.
func TestAClockThatJumpsLowersNoLimit(t *testing.T) {
	c := New(Settings{Within: 200 * time.Millisecond, Classes: 1})
	now := time.Duration(0)
	for ; now < 10*time.Second; now += 10 * time.Millisecond {
		r := &Ticket{Decide: func(Verdict) {}}
		if c.Arrive(now, r) == Admitted {
			c.Done(now+5*time.Millisecond, r, Answered)
		}
		if now%(100*time.Millisecond) == 0 {
			c.Tick(now)
		}
	}
	before := c.limit()
	for _, at := range []time.Duration{now + time.Hour, now, 0, now + 2*time.Hour, now + 1000*time.Hour} {
		c.Tick(at)
		r := &Ticket{Decide: func(Verdict) {}}
		if v := c.Arrive(at, r); v != Admitted {
			t.Errorf("at %v: %v", at, v)
		}
		c.Done(at, r, Answered)
		if c.limit() < before {
			t.Errorf("at %v the limit is %d, before the jump %d", at, c.limit(), before)
		}
	}
}

func TestAServiceDoesNotFillUpBeforeTheFirstTickOfAnOverload(t *testing.T) {
	s := setting{processors: 1, mean: 10 * time.Millisecond, constant: true, within: 200 * time.Millisecond}
	s.phases = []phase{{calmUntil, 0.3}, {11 * time.Second, 3}}
	for seed := range uint64(10) {
		most := 0
		s.play(func(w *world) gate {
			o := newOurs(Settings{})(w).(*ours)
			for at := calmUntil; at < calmUntil+200*time.Millisecond; at += time.Millisecond {
				w.at(at, func() { most = max(most, o.c.inService) })
			}
			return o
		}, seed)
		if most > 18 { // what 3x brings in 90 ms, less what is answered
			t.Errorf("seed %d: %d requests in service", seed, most)
		}
	}
}
