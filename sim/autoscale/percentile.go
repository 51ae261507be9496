package autoscale

import (
	"math"
	"time"

	"github.com/trimtab/trimtab/quantile"
)

// lookback is how far back a Percentile looks. It is that of Datadog and of VPA's checkpoints; that
// of EKS is not published.
const lookback = 8 * 24 * time.Hour

// Percentile recommends an amount for one container: a percentile of what it used in the last 8
// days, each reading counting the same, and a margin.
type Percentile struct {
	q, margin float64
	// after is the history without which nothing is recommended.
	after       time.Duration
	first, last time.Time
	// hours are the readings by the hour, oldest first; all is their sum.
	hours []hour
	all   quantile.Histogram
}

type hour struct {
	number int64
	uses   quantile.Histogram
}

// NewEKS returns the rule of EKS Auto Mode's resource optimization for CPU, profile Balanced: the
// 95th percentile of the use is 87% of the request; nothing is recommended before 12 h of history.
func NewEKS() *Percentile { return &Percentile{q: 0.95, margin: 1 / 0.87, after: 12 * time.Hour} }

// NewDPA returns the rule of a DatadogPodAutoscaler for CPU of a container whose request is its
// limit: the 95th percentile of 8 days and 5%. No least history is published.
func NewDPA() *Percentile { return &Percentile{q: 0.95, margin: 1.05} }

// Observe adds a use in cores, in order of time. It ignores an invalid value.
func (p *Percentile) Observe(at time.Time, use float64) {
	if !(use >= 0 && use <= 1e9) {
		return
	}
	if p.first.IsZero() {
		p.first = at
	}
	p.last = at
	number := at.UnixNano() / int64(time.Hour)
	if n := len(p.hours); n == 0 || p.hours[n-1].number != number {
		p.begin(number)
	}
	p.hours[len(p.hours)-1].uses.Add(use, 1)
	p.all.Add(use, 1)
}

// begin begins an hour and forgets those that are too old.
func (p *Percentile) begin(number int64) {
	old := 0
	for old < len(p.hours) && number-p.hours[old].number > int64(lookback/time.Hour) {
		old++
	}
	if old > 0 {
		p.hours = p.hours[old:]
		p.all.Reset()
		for i := range p.hours {
			p.all.Merge(&p.hours[i].uses)
		}
	}
	p.hours = append(p.hours, hour{number: number})
}

// Recommend returns the amount; false: there is not enough history.
func (p *Percentile) Recommend() (float64, bool) {
	use, ok := p.all.Quantile(p.q)
	if !ok || p.last.Sub(p.first) < p.after {
		return 0, false
	}
	return use * p.margin, true
}

// rise is the least rise that is worth a resize: less is within the error of the percentile. A larger
// one would leave a container at its limit that is to have 5% more than it uses.
const rise = 0.02

// Update returns the request that a container should have: what is recommended if that is 2% more or
// a tenth less. The sources name no step.
func (p *Percentile) Update(request float64) float64 {
	to, ok := p.Recommend()
	to = math.Max(to, leastCPU)
	if !ok || to < (1+rise)*request && to > (1-worth)*request {
		return request
	}
	return to
}
