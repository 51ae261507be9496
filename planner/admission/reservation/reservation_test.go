package reservation_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trimtab/trimtab/planner/admission/reservation"
)

const (
	tick   = 100 * time.Millisecond
	within = 200 * time.Millisecond
)

// played is what came of a load.
type played struct {
	sent, inTime [3]int
	refused      int
	late         float64 // share of the answered
}

// play sends Poisson arrivals of three classes (30%, 50%, 20%) for some seconds to a service of c
// servers with a mean service time, behind a queue with a time-out of 150 ms, as HAProxy has one, in
// which the rule bounds admission, after calm seconds at 0.8 times its capacity, which do not count, as
// the last half second does not. cv is 0 for constant and 1 for exponential service times.
func play(seed uint64, load float64, c int, mean, cv, seconds float64) (out played) {
	const calm, last = 5, 0.5
	counts := func(came float64) bool { return came >= calm && came < calm+seconds-last }
	rate, sent := 0.8, 0
	rng := rand.New(rand.NewPCG(seed, 7))
	rule := reservation.New(within, 3)
	var most []int
	type request struct {
		at    float64
		class int
	}
	var queue []request
	free := make([]float64, c)
	begun := time.Unix(1e9, 0)
	answered, next, nextTick := uint64(0), rng.ExpFloat64()*mean/float64(c)/rate, 0.0
	var ends, took []float64
	start := func(now float64) {
		for i := range free {
			for free[i] <= now && len(queue) > 0 {
				q := queue[0]
				queue = queue[1:]
				if now-q.at > 0.15 {
					out.refused++
					continue
				}
				service := mean
				if cv > 0 {
					service *= rng.ExpFloat64()
				}
				free[i] = now + service
				ends = append(ends, free[i])
				if took = append(took, free[i]-q.at); free[i]-q.at <= within.Seconds() && counts(q.at) {
					out.inTime[q.class]++
				}
			}
		}
	}
	for now := 0.0; now < calm+seconds; now += mean / 50 {
		if rate != load && now >= calm {
			rate, out, took = load, played{}, nil
		}
		start(now)
		serving := uint64(0)
		for _, f := range free {
			if f > now {
				serving++
			}
		}
		if now >= nextTick {
			answered = 0
			for _, e := range ends {
				if e <= now {
					answered++
				}
			}
			most = rule.Tick(reservation.Reading{At: begun.Add(time.Duration(now * 1e9)), Arrived: uint64(sent), Answered: answered, Waiting: uint64(len(queue)), Serving: serving, Limit: uint64(c)}).Most
			nextTick += tick.Seconds()
		}
		for next <= now {
			class := 1
			switch u := rng.Float64(); {
			case u < 0.3:
				class = 0
			case u > 0.8:
				class = 2
			}
			if sent++; counts(next) {
				out.sent[class]++
			}
			if most != nil && int(serving)+len(queue)+1 > most[class] {
				out.refused++
			} else {
				queue = append(queue, request{next, class})
			}
			next += rng.ExpFloat64() * mean / float64(c) / rate
		}
	}
	slow := 0
	for _, v := range took {
		if v > within.Seconds() {
			slow++
		}
	}
	out.late = float64(slow) / float64(max(1, len(took)))
	return out
}

func TestTheBoundsHaveOthersPayForTheMostImportantClass(t *testing.T) {
	for _, s := range []struct {
		c        int
		mean, cv float64
	}{{1, 0.010, 0}, {2, 0.020, 0}, {2, 0.020, 1}, {8, 0.040, 1}, {4, 0.002, 1}} {
		for _, load := range []float64{1.5, 2, 3} {
			const seconds = 20
			var p played
			for seed := range uint64(5) {
				p.add(play(seed, load, s.c, s.mean, s.cv, seconds))
			}
			good := float64(p.inTime[0]+p.inTime[1]+p.inTime[2]) / (float64(s.c) / s.mean * 5 * (seconds - 0.5))
			possible := 1.0 // of the critical ones, if none waited
			if s.cv > 0 {
				possible -= math.Exp(-within.Seconds() / s.mean)
			}
			critical := float64(p.inTime[0]) / float64(p.sent[0]) / possible
			late := p.late / 5
			t.Logf("%d servers, %v s, cv %v, load %v: goodput %.3f, critical in time %.4f of the possible %.4f, late %.4f of the answered", s.c, s.mean, s.cv, load, good, critical, possible, late)
			// At 3x the critical ones alone are 0.9 of the capacity.
			if good < 0.91 || critical < 0.99 && load < 3 || critical < 0.92 || late > 0.04 {
				t.Errorf("goodput %.3f, critical %.4f, late %.4f", good, critical, late)
			}
		}
	}
}

// add adds the counts and shares of another run.
func (p *played) add(o played) {
	for k := range p.sent {
		p.sent[k] += o.sent[k]
		p.inTime[k] += o.inTime[k]
	}
	p.late += o.late
}

func TestBelowItsCapacityNearlyNothingIsRefused(t *testing.T) {
	for _, s := range []struct {
		c        int
		mean, cv float64
	}{{1, 0.010, 0}, {2, 0.020, 0}, {4, 0.002, 1}, {8, 0.01, 1}} {
		p := play(5, 0.8, s.c, s.mean, s.cv, 60)
		sent := p.sent[0] + p.sent[1] + p.sent[2]
		t.Logf("%d servers, %v s: %d of %d refused", s.c, s.mean, p.refused, sent)
		if float64(p.refused) > 0.001*float64(sent) {
			t.Errorf("%d of %d refused", p.refused, sent)
		}
	}
}

// reading is one at a number of ticks, at 10 answers a tick.
func reading(n int, waiting uint64) reservation.Reading {
	return reservation.Reading{At: time.Unix(1e9, 0).Add(time.Duration(n) * tick), Arrived: uint64(20 * n), Answered: uint64(10 * n), Waiting: waiting, Serving: 2, Limit: 2}
}

func TestNothingIsBoundedBeforeTheServiceWasSeenBusy(t *testing.T) {
	r := reservation.New(within, 3)
	for n := range 50 {
		if d := r.Tick(reading(n, 0)); d.Most != nil || d.Overloaded {
			t.Fatalf("%+v", d)
		}
	}
}

func TestAnOverloadIsAQueueThatStandsAndEndsWithIt(t *testing.T) {
	r := reservation.New(within, 3)
	for n := range 20 {
		r.Tick(reading(n, 5))
	}
	d := r.Tick(reading(20, 5))
	if !d.Overloaded || d.Rate != 100 || len(d.Most) != 3 || d.Most[0] != 16 || d.Most[1] != 6 || d.Most[2] != 3 {
		t.Fatalf("%+v", d)
	}
	n := 21
	for ; n < 26; n++ {
		d = r.Tick(reading(n, 0))
	}
	if d.Overloaded || d.Most[0] != 18 || d.Most[2] != 15 {
		t.Errorf("half a second after it %+v", d)
	}
	if d = r.Tick(reading(n, 5)); d.Overloaded {
		t.Errorf("a burst counts as one: %+v", d)
	}
}

// What waits is then what has come before.
func TestAnOverloadEndsWithTheArrivals(t *testing.T) {
	r := reservation.New(within, 3)
	for n := range 20 {
		r.Tick(reading(n, 5))
	}
	var d reservation.Decision
	for n := 20; n < 40; n++ {
		x := reading(n, 5)
		x.Arrived = reading(20, 5).Arrived + uint64(5*(n-20))
		d = r.Tick(x)
	}
	if d.Overloaded {
		t.Errorf("at half of what it answers %+v", d)
	}
}

// A service that stalled is seen to be fast again, since one request more than it may serve waits.
func TestAStallDoesNotBoundForGood(t *testing.T) {
	r := reservation.New(within, 3)
	n := 0
	for ; n < 20; n++ {
		r.Tick(reading(n, 5))
	}
	still := reading(n, 5).Answered
	var d reservation.Decision
	for ; n < 600; n++ {
		x := reading(n, 5)
		x.Answered = still
		d = r.Tick(x)
	}
	if d.Most[0] != 3 || d.Most[2] != 3 {
		t.Errorf("in the stall %+v", d)
	}
	for ; n < 640; n++ {
		d = r.Tick(reading(n, 1))
	}
	if d.Rate < 99 {
		t.Errorf("after it %+v", d)
	}
}

func TestCountersThatGoBackAndClocksThatJumpTeachNothing(t *testing.T) {
	r := reservation.New(within, 3)
	for n := range 20 {
		r.Tick(reading(n, 5))
	}
	back := reading(20, 5)
	back.Answered = 3
	if d := r.Tick(back); d.Rate != 100 || d.Overloaded {
		t.Errorf("%+v", d)
	}
	early := reading(5, 5)
	if d := r.Tick(early); d.Rate != 100 || d.Overloaded {
		t.Errorf("%+v", d)
	}
	if d := r.Tick(reading(1e6, 5)); d.Rate != 100 || d.Overloaded {
		t.Errorf("%+v", d)
	}
	r = reservation.New(within, 3)
	for n := range 20 {
		x := reading(n, 5)
		x.Limit = 0
		if d := r.Tick(x); d.Most != nil {
			t.Fatalf("without a limit %+v", d)
		}
	}
}
