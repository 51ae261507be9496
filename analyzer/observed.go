package analyzer

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/report"
	"github.com/trimtab/trimtab/quantile"
)

// observed sums up all requests of a discovered workload: see [trimtab.Observed]. The zero value
// has none.
type observed struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Read is the number of requests whose spans were read, Requests the number that they stand for
	// under sampling.
	Read     float64            `json:"read"`
	Requests float64            `json:"requests"`
	LoadMost float64            `json:"load_most"`
	Latency  quantile.Histogram `json:"latency"`
}

// maxObserved is more than the number of requests of any service: above it, adding one would be
// lost in rounding. Later requests are not counted.
const maxObserved = 1e15

// observe adds an interval that ended at end.
func (o *observed) observe(end time.Time, length time.Duration, s *report.Spans, load float64) {
	if !(o.Requests+s.Requests <= maxObserved) || !(o.Latency.Count()+s.Latency.Count() <= maxObserved) {
		return
	}
	if o.From.IsZero() {
		o.From = end.Add(-length)
	}
	o.To = end
	o.Read += s.Read
	o.Requests += s.Requests
	o.LoadMost = math.Max(o.LoadMost, load)
	o.Latency.Merge(&s.Latency)
	o.Latency.Settle() // same rounding as after a restart
}

// result returns the summary for an estimate; nil: no latency was observed.
func (o *observed) result() *trimtab.Observed {
	if o == nil {
		return nil
	}
	p95, ok := o.Latency.Quantile(trimtab.ObservedQuantile)
	if !ok {
		return nil
	}
	out := &trimtab.Observed{From: o.From, To: o.To, Requests: o.Read, LoadMost: o.LoadMost, P95: trimtab.Seconds(p95)}
	out.Load = math.Min(o.Requests/o.To.Sub(o.From).Seconds(), o.LoadMost)
	if upper, ok := o.Latency.Upper(trimtab.ObservedQuantile, trimtab.ObservedConfidence, o.Read); ok {
		s := trimtab.Seconds(math.Max(upper, p95))
		out.P95Upper = &s
	}
	return out
}

// valid returns an error for a saved state that no requests can lead to.
func (o *observed) valid() error {
	for _, v := range []float64{o.Read, o.Requests, o.LoadMost, o.Latency.Count()} {
		if !(v >= 0 && v <= maxObserved) {
			return trimtab.Invalidf("restore observed requests: %v", v)
		}
	}
	if o.Requests > 0 && (o.From.IsZero() || !o.To.After(o.From)) {
		return trimtab.Invalidf("restore observed requests: from %v to %v", o.From, o.To)
	}
	return nil
}
