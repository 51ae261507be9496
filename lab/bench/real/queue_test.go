package main

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab/lab/services/shape"
)

const ms = time.Millisecond

func TestARequestWaitsForTheNextPeriodWhenTheQuotaIsUsedUp(t *testing.T) {
	for name, c := range map[string]struct {
		at, cost, quota, done time.Duration
	}{
		"within the quota":              {0, 10 * ms, 20 * ms, 10 * ms},
		"late in a period":              {95 * ms, 10 * ms, 20 * ms, 105 * ms},
		"more than one quota":           {0, 30 * ms, 20 * ms, 110 * ms},
		"exactly the quota":             {0, 20 * ms, 20 * ms, 20 * ms},
		"many periods":                  {0, 50 * ms, 10 * ms, 410 * ms},
		"one thread uses one core only": {0, 150 * ms, 200 * ms, 150 * ms},
	} {
		var q queue
		if got := q.serve(c.at, c.cost, c.quota); got != c.done {
			t.Errorf("%s: done at %v, want %v", name, got, c.done)
		}
	}
}

func TestRequestsWaitForThoseBefore(t *testing.T) {
	var q queue
	for k, want := range []time.Duration{10 * ms, 20 * ms, 110 * ms} {
		if got := q.serve(0, 10*ms, 20*ms); got != want {
			t.Errorf("request %d is done at %v, want %v", k, got, want)
		}
	}
}

func TestMoreQuotaIsNeverWorseInTheModel(t *testing.T) {
	s, whole := shape.All()[0], 3*time.Minute
	in := arrivals(&s, 0, whole, 0.66, 10*ms, 1)
	last := -1
	for quota := 5 * ms; quota <= 100*ms; quota += 5 * ms {
		met := replay(in, 10*ms, 200*ms, func(time.Duration) time.Duration { return quota })
		if met < last {
			t.Errorf("quota %v: %d in time, and %d with less", quota, met, last)
		}
		last = met
	}
	if last != len(in) {
		t.Errorf("a whole core answers %d of %d in time", last, len(in))
	}
}

// The scenario is of use only where knowing the loads helps and equal shares
// do not do.
func TestPeaksTellEqualSharesFromAProportionalRule(t *testing.T) {
	s, pool, cost := shape.All()[0], 0.66, 10*ms
	limit := [3]time.Duration{200 * ms, 250 * ms, 300 * ms}
	var in [3][]arrival
	for i := range in {
		in[i] = arrivals(&s, i, s.Length, pool, cost, 1)
	}
	all, same, proportional := 0, 0, 0
	for i := range in {
		all += len(in[i])
		same += replay(in[i], cost, limit[i], func(time.Duration) time.Duration { return time.Duration(pool / 3 * float64(period)) })
		proportional += replay(in[i], cost, limit[i], func(at time.Duration) time.Duration {
			var need [3]float64
			for k := range in {
				need[k] = work(in[k], at-5*time.Second, at)
			}
			return time.Duration(pool * proportions(need)[i] * float64(period))
		})
	}
	if v := share(same, all); v < 0.5 || v > 0.75 {
		t.Errorf("equal shares: %.3f in time", v)
	}
	if v := share(proportional, all); v < 0.96 {
		t.Errorf("proportional: %.3f in time", v)
	}
}
