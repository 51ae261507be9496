package sojourn

import (
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/num"
)

// Report summarises the spans of one component in one interval.
type Report struct {
	// Allocation in units that serve one request each, > 0.
	Allocation float64
	// Rate of visits, in 1/s, and their mean sojourn time, in ms; > 0.
	Rate, Mean float64
}

// Curve learns the sojourn time of one component over its allocation. The zero
// value has seen nothing. It is not safe for concurrent use.
type Curve struct{ state }

type state struct {
	// Work is ln of the service time in ms, with the variance of the estimate;
	// Rate the rate of visits per ms.
	Work, Variance, Rate float64
	Count                int
}

const (
	noise   = 0.05 * 0.05 // variance of ln of a service time from one interval
	drifts  = 0.03 * 0.03 // added for every interval
	another = 3.0         // deviations, from where on it is another service
)

// Observe reads one report. It returns an error that is trimtab.ErrInvalid, and
// learns nothing, when a number is not finite and > 0.
func (c *Curve) Observe(r Report) error {
	for _, v := range []float64{r.Allocation, r.Rate, r.Mean} {
		if !(v > 1e-9 && v < 1e12) {
			return trimtab.Invalidf("sojourn: report %+v", r)
		}
	}
	rate := r.Rate / 1000
	// T = w/(1 − λw/a)  ⇔  w = T/(1 + λT/a)
	work := math.Log(r.Mean / (1 + rate*r.Mean/r.Allocation))
	c.Rate = rate
	c.Count++
	d := work - c.Work
	c.Variance += drifts
	if c.Count == 1 || d*d > another*another*(c.Variance+noise) {
		c.Work, c.Variance = work, noise
		return nil
	}
	gain := c.Variance / (c.Variance + noise)
	c.Work += gain * d
	c.Variance *= 1 - gain
	return nil
}

// Reports returns how many reports were learnt.
func (c *Curve) Reports() int { return c.Count }

// Needed is the allocation below which what waits grows without bound.
func (c *Curve) Needed() float64 { return c.Rate * math.Exp(c.Work) }

// Mean returns the mean sojourn time at an allocation, in ms, for service times that are z
// standard deviations longer than estimated. At and below saturation it grows further, linearly
// in the load, so that it orders allocations there too.
func (c *Curve) Mean(allocation, z float64) float64 {
	if c.Count == 0 || !(allocation > 0) {
		return math.Inf(1)
	}
	w := math.Exp(c.Work + z*math.Sqrt(c.Variance))
	load := c.Rate * w / allocation
	if load < saturated {
		return w / (1 - load)
	}
	return w/(1-saturated) + beyond*(load-saturated)
}

const (
	saturated = 0.98
	beyond    = 10_000 // ms: what waits for minutes behind a load of 2
)

// Snapshot and Restore carry the state over a restart.
func (c *Curve) Snapshot() ([]byte, error) { return num.Seal("sojourn/1", c.state) }

// Restore returns an error that is trimtab.ErrInvalid, and changes nothing, for
// bytes that are not a snapshot.
func (c *Curve) Restore(b []byte) error {
	var s state
	if err := num.Unseal("sojourn/1", b, &s); err != nil {
		return fmt.Errorf("restore sojourn: %w: %w", trimtab.ErrInvalid, err)
	}
	if math.IsNaN(s.Work) || math.Abs(s.Work) > 60 || !(s.Variance >= 0 && s.Variance < 1e6) || !(s.Rate >= 0 && s.Rate < 1e12) || s.Count < 0 {
		return trimtab.Invalidf("restore sojourn: %+v", s)
	}
	c.state = s
	return nil
}
