package trimtab

import (
	"math"
	"time"

	"github.com/trimtab/trimtab/internal/valid"
	"github.com/trimtab/trimtab/quantile"
)

// The bound of [Observed.P95Upper]: of the 0.95 quantile, with this confidence.
const (
	ObservedQuantile   = 0.95
	ObservedConfidence = 0.95
)

// Observed is what all spans of a service without an SLO have shown since it was found. An SLO
// can be drafted from it.
type Observed struct {
	// From is the beginning of the first interval with a request, To the end of the last.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Requests is how many requests were read. A sampled request counts once, however many it
	// represents.
	Requests float64 `json:"requests"`
	// Load is the mean number of requests per second between From and To, and LoadMost
	// the highest of an interval; both are adjusted for sampling.
	Load     float64 `json:"load"`
	LoadMost float64 `json:"load_most"`
	// P95 is the latency within which 95% of the requests ended, and P95Upper its upper 95%
	// confidence bound, an order statistic: it is valid for any distribution, for the loads seen.
	// P95Upper is nil while there were too few requests.
	P95      Seconds  `json:"p95_s"`
	P95Upper *Seconds `json:"p95_upper_s,omitempty"`
}

// ObservedNeeded returns how many requests [Observed.P95Upper] needs.
func ObservedNeeded() float64 { return quantile.Needed(ObservedQuantile, ObservedConfidence) }

func (o *Observed) validate(workload string) error {
	if o.From.IsZero() || o.To.Before(o.From) {
		return Invalidf("estimate of %s: observed from %v to %v", workload, o.From, o.To)
	}
	for _, v := range []float64{o.Requests, o.Load, o.LoadMost, float64(o.P95)} {
		if err := valid.NonNegative("observed of "+workload, v); err != nil {
			return err
		}
	}
	if u := o.P95Upper; u != nil && !(*u >= o.P95 && !math.IsInf(float64(*u), 0)) {
		return Invalidf("estimate of %s: the bound %v of a p95 of %v", workload, float64(*u), float64(o.P95))
	}
	return nil
}
