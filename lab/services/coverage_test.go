package services

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/trimtab/trimtab"
)

// In a queue with exponential work that has a core for itself, P(T <= D) = 1 - exp(-(μ-λ) D)
// (Kleinrock, Queueing Systems I, 1975).
func TestTheTruthIsThatOfAQueueWithExponentialWork(t *testing.T) {
	const load, cost, latency = 5, 0.1, 0.4
	rng := rand.New(rand.NewPCG(1, 2))
	of := &truth{Service: Service{Servers: 1, Concurrency: 1, Latency: latency}}
	for at := 0.0; at < settled+replayed; at += rng.ExpFloat64() / load {
		of.coming = append(of.coming, Request{At: at, Work: cost * rng.ExpFloat64()})
	}
	// The mean wait of a step is half of it. 3000 requests, of which those that wait together
	// share a fate.
	want := 1 - math.Exp(-(1/cost-load)*(latency-step/2))
	if p := of.at(1); math.Abs(p-want) > 0.03 {
		t.Errorf("%.3f in time, want %.3f", p, want)
	}
}

func TestTheTruthIsNothingWhereMoreIsAskedForThanThereIsAndAllWhereThereIsPlenty(t *testing.T) {
	of := newTruth(&three()[0], 20, 1)
	if p := of.at(0.19); p > 0.01 {
		t.Errorf("0.19 cores for 0.2 cores of work: %.3f in time", p)
	}
	if p := of.at(0.6); p < 0.999 {
		t.Errorf("0.6 cores for 0.2 cores of work: %.3f in time", p)
	}
}

func TestABandHoldsATruthBetweenItsBounds(t *testing.T) {
	var c Covered
	for _, truth := range []float64{0, 0.3, 0.5, 0.7, 1} {
		c.point(trimtab.Band{Lower: 0.4, Mean: 0.5, Upper: 1}, truth)
	}
	if want := (Covered{Points: 5, Inside: 3, Knee: 3, KneeInside: 2, Width: 3 * 0.6}); math.Abs(c.Width-want.Width) > 1e-9 || c.Inside != want.Inside || c.Points != want.Points || c.Knee != want.Knee || c.KneeInside != want.KneeInside {
		t.Errorf("%+v, want %+v", c, want)
	}
}
