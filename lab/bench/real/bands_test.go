package main

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/lab/services/shown"
)

// Three services get 10 requests a second, of which all of the first, half of the second and none
// of the third are in time. The curve has 0.8 to 1 from 0.2 cores on, and 0 to 0.2 up to 0.1.
func TestWhatClientsSawIsComparedWithTheBandOfBefore(t *testing.T) {
	c := &trimtab.Curve{Load: 10, Level: 0.9, Knots: []trimtab.Knot{
		{Allocation: 0.1, Band: trimtab.Band{Lower: 0, Mean: 0.1, Upper: 0.2}},
		{Allocation: 0.2, Band: trimtab.Band{Lower: 0.8, Mean: 0.9, Upper: 1}},
	}}
	var services [3]*service
	var outcomes [3][]outcome
	for i := range services {
		services[i] = &service{SLO: slo{Latency: 100 * time.Millisecond, Fraction: 0.9}}
		for k := range 600 {
			took := 10 * time.Millisecond
			if i == 2 || i == 1 && k%2 == 0 {
				took = 300 * time.Millisecond
			}
			outcomes[i] = append(outcomes[i], outcome{At: time.Duration(k) * 100 * time.Millisecond, Took: took, Sent: true})
		}
	}
	var seen watched
	for k := range 61 {
		at := time.Duration(k) * time.Second
		seen.Samples = append(seen.Samples, sample{At: at, Cores: [3]float64{0.25, 0.25, 0.25}, Used: [3]time.Duration{at / 10, at / 5, at / 5}})
	}
	for _, x := range []struct {
		name   string
		at     time.Duration
		pool   float64
		quotas bool
		want   shown.Tally
	}{
		{name: "by quota only the first is in its band", at: 40 * time.Second, pool: 0.5, quotas: true, want: shown.Tally{Of: 3, Inside: 1}},
		// The others leave the third 0.2 cores of 0.5, but it is sure of 0.25.
		{name: "what a service is sure of counts", at: 40 * time.Second, pool: 0.5, want: shown.Tally{Of: 3, Inside: 1}},
		{name: "while it learns nothing is compared", at: 20 * time.Second, pool: 0.5, quotas: true},
		{name: "nor what was not watched", at: 55 * time.Second, pool: 0.5, quotas: true},
	} {
		var b bands
		for i := range b.curves {
			b.curves[i] = []told{{x.at, c}}
		}
		if got := b.compare(x.pool, x.quotas, services, outcomes, &seen); got.Of != x.want.Of || got.Inside != x.want.Inside || got.Moving != 0 {
			t.Errorf("%s: %+v, want %+v", x.name, got, x.want)
		}
	}
	if n := open(outcomes[2], 10*time.Second+50*time.Millisecond); n != 3 {
		t.Errorf("%v requests of 300 ms, of 10 a second, are open, want 3", n)
	}
}
