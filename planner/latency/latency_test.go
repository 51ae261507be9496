package latency_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/latency"
)

// estimate is of a workload whose p95 and p99 lie as far above its p50 as log-logistic latencies
// of an exponent k have them.
func estimate(p, k float64) *trimtab.Estimate {
	at := func(q float64) trimtab.Seconds { return trimtab.Seconds(math.Pow(q/(1-q), 1/k)) }
	return &trimtab.Estimate{Workload: "a", Performance: &p, Requests: 98, Latency: map[string]trimtab.Seconds{"p50": 1, "p95": at(.95), "p99": at(.99)},
		Curve: &trimtab.Curve{Knots: []trimtab.Knot{{Allocation: 1, Band: trimtab.Band{Lower: p, Mean: p, Upper: p}}}}}
}

// Odds of 0.8 are 4. Twice the latency with an exponent of 2 makes them 16, half of it 1.
// 98 of 98 in time are taken for 0.99, with odds of 99: half the latency leaves 24.75.
func TestTheOddsGrowAsAPowerOfTheLatency(t *testing.T) {
	for _, c := range []struct {
		p     float64
		after time.Duration
		want  float64
	}{{0.8, 2 * time.Second, 16. / 17}, {0.8, 500 * time.Millisecond, 0.5}, {0, time.Minute, 0}, {1, 2 * time.Second, 1}, {1, 500 * time.Millisecond, 24.75 / 25.75}} {
		e := estimate(c.p, 2)
		got, err := latency.Under(e, time.Second, c.after)
		if err != nil {
			t.Fatal(err)
		}
		b := got.Curve.Knots[0].Band
		for _, v := range []float64{b.Lower, b.Mean, b.Upper, *got.Performance} {
			if math.Abs(v-c.want) > 1e-9 {
				t.Errorf("%v within 1 s: %v within %v, want %v", c.p, v, c.after, c.want)
			}
		}
		if *e.Performance != c.p || e.Curve.Knots[0].Band.Mean != c.p {
			t.Error("the estimate itself was changed")
		}
	}
}

func TestWithoutQuantilesNothingIsSaid(t *testing.T) {
	e := estimate(0.8, 2)
	delete(e.Latency, "p50")
	if _, err := latency.Under(e, time.Second, time.Minute); !errors.Is(err, trimtab.ErrUnsupported) {
		t.Error(err)
	}
}
