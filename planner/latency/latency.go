// Package latency says what a curve of the share of requests within a latency would be under
// another latency. The odds of a request to be in time are taken to grow as a power of the
// latency (log-logistic latencies), at every allocation alike:
//
//	odds(p'(a)) = odds(p(a)) · (T'/T)^k
//	k from p50 to p95, and from p50 to p99, of the newest interval:
//	k_q = ln(q/(1-q)) / ln(t_q/t_50)
//
// The two k are the two ends of the band, and their geometric mean is for its mean.
package latency

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// Under returns a copy of the estimate as it would be with a latency of after in place of before.
// It returns an error that is trimtab.ErrUnsupported if the estimate has too few quantiles.
func Under(e *trimtab.Estimate, before, after time.Duration) (*trimtab.Estimate, error) {
	low, high := math.Inf(1), 0.0
	half := float64(e.Latency["p50"])
	for name, q := range map[string]float64{"p95": .95, "p99": .99} {
		at := float64(e.Latency[name])
		if half > 0 && at > half {
			k := math.Log(q/(1-q)) / math.Log(at/half)
			low, high = math.Min(low, k), math.Max(high, k)
		}
	}
	if high == 0 {
		return nil, fmt.Errorf("latency of %s: its newest interval has no p50 with a p95 or p99 above it: %w", e.Workload, trimtab.ErrUnsupported)
	}
	ratio := after.Seconds() / before.Seconds()
	moved := func(p, k float64) float64 {
		if p <= 0 || p >= 1 && ratio >= 1 {
			return p
		}
		p = math.Min(p, surest(e.Requests))
		return 1 / (1 + (1-p)/p*math.Pow(ratio, -k))
	}
	if ratio < 1 {
		low, high = high, low // the steeper one loses more
	}
	out := *e
	c := *e.Curve
	c.Knots = slices.Clone(c.Knots)
	for i := range c.Knots {
		b := &c.Knots[i].Band
		b.Lower, b.Mean, b.Upper = moved(b.Lower, low), moved(b.Mean, math.Sqrt(low*high)), moved(b.Upper, high)
	}
	out.Curve = &c
	if p := e.Performance; p != nil {
		v := moved(*p, math.Sqrt(low*high))
		out.Performance = &v
	}
	return &out, nil
}

// surest returns the highest share of requests in time that a report can prove: by Laplace's
// rule, after n of n.
func surest(requests float64) float64 {
	if requests == 0 {
		requests = 1000 // as many as most reports have
	}
	return (requests + 1) / (requests + 2)
}
