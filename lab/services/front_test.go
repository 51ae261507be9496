package services

import (
	"math/rand/v2"
	"testing"

	"github.com/trimtab/trimtab/planner/overload"
)

// behind plays one service with a gate behind a quota, and returns the share of its requests in time
// once the gate has learnt.
func behind(s *Service, cores float64, seconds int, seed uint64) float64 {
	q := &queue{Service: s, coming: draw(s, float64(seconds), seed), quota: cores}
	at := state{queues: []*queue{q}}
	if err := at.stand(Gate); err != nil {
		panic(err) // the name is a constant
	}
	for k := range seconds * int(1/step) {
		q.advance(float64(k)*step, k%steps)
	}
	var in part
	for _, a := range q.done {
		if a.at > 10 && a.at < float64(seconds)-1 {
			in.add(a.met(s.Latency))
		}
	}
	return in.share()
}

// What plans say of a service whose requests are refused beyond its share, over shares, loads, costs and
// how much these vary. The noise of 50 s is that of the mean work of about 1,000 requests.
func TestTheBandOfWhatAGateAnswersHolds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	const cases, noise = 100, 0.05
	inside := 0
	for seed := range uint64(cases) {
		cores := 0.15 + 1.5*rng.Float64()
		s := three()[seed%3]
		s.Cost, s.Spread, s.Servers = 0.004+0.008*rng.Float64(), 0.1+0.9*rng.Float64(), 4
		s.Concurrency = 8
		wants := cores * (1.05 + 1.5*rng.Float64())
		s.Load = func(float64) float64 { return wants / s.Cost }
		got, b := behind(&s, cores, 60, seed), overload.Answers(cores, wants)
		if got >= b.Lower*(1-noise) && got <= b.Upper*(1+noise) {
			inside++
		} else {
			t.Logf("%.2f cores of %.2f, cost %.1f ms, spread %.2f: %.3f in time, want %.3f to %.3f", cores, wants, 1000*s.Cost, s.Spread, got, b.Lower, b.Upper)
		}
	}
	t.Logf("%d of %d inside", inside, cases)
	if inside < 95*cases/100 {
		t.Errorf("%d of %d are inside the band", inside, cases)
	}
}

func TestALimiterRefusesWhatIsOverItsLimitAndForgetsWhoLeft(t *testing.T) {
	q := &queue{Service: &three()[0], quota: 1}
	at := state{queues: []*queue{q}}
	if err := at.stand("envoy"); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		q.front.arrive(request{at: 1, left: 1})
	}
	if len(q.waiting) != 3 || len(q.done) != 2 || !q.done[0].refused || q.done[0].met(10) {
		t.Fatalf("%d in service, %+v", len(q.waiting), q.done)
	}
	q.end(&q.waiting[0], 2)
	q.front.arrive(request{at: 2, left: 1})
	if len(q.waiting) != 4 {
		t.Errorf("%d in service: one that left counts still", len(q.waiting))
	}
}

func TestTheLimitOfAPlanBoundsAGateAndComesOffAgain(t *testing.T) {
	q := &queue{Service: &three()[0], quota: 1}
	at := state{queues: []*queue{q}}
	if err := at.stand(Gate); err != nil {
		t.Fatal(err)
	}
	q.front.bound(0, 2)
	for range 5 {
		q.front.arrive(request{at: 1, left: 1})
	}
	if len(q.waiting) != 2 || q.front.waits() != 3 {
		t.Fatalf("%d in service, %d wait; the limit is 2", len(q.waiting), q.front.waits())
	}
	if q.front.bound(1, 0); len(q.waiting) != 5 {
		t.Errorf("%d in service without a limit", len(q.waiting))
	}
	for k := range 200 { // nobody answers: a request that is let in is not refused, and none waits
		q.front.step(1 + float64(k)*step)
	}
	if q.front.waits() != 0 || len(q.done) != 0 {
		t.Errorf("%d wait, %+v", q.front.waits(), q.done)
	}
}
