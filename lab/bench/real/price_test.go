package main

import (
	"math"
	"testing"
	"time"
)

func TestWorkThatBecomesDearerIsAskedForLessUntilARequestCostsTheSame(t *testing.T) {
	const cost = 10 * time.Millisecond
	for _, dearer := range []float64{1.3, 1, 0.75} {
		var p price
		spent := time.Second
		p.begin(200, cost, spent)
		for range 60 { // half a minute of 30 requests each second
			for range 15 {
				work := p.now()
				p.did(work)
				spent += time.Duration(float64(cost) * dearer * float64(work) / 200)
			}
			p.tune(cost, spent)
		}
		if got := float64(p.now()) * dearer / 200; math.Abs(got-1) > 0.02 {
			t.Errorf("work that is %v times as dear: a request costs %v of what was calibrated", dearer, got)
		}
	}
}

func TestWorkStaysInBoundsWhateverIsMeasured(t *testing.T) {
	var p price
	p.begin(100, 10*time.Millisecond, 0)
	spent := time.Duration(0)
	for range 100 { // nothing ends, CPU is used
		spent += 500 * time.Millisecond
		p.tune(10*time.Millisecond, spent)
	}
	if got := p.now(); got != 63 {
		t.Errorf("the work of a request is %d, want 63: 100 / 1.6", got)
	}
	for range 1000 { // neither
		p.tune(10*time.Millisecond, spent)
	}
	if got := p.now(); got != 63 {
		t.Errorf("without any news the work of a request became %d", got)
	}
}
