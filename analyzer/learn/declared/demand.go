package declared

import (
	"math"

	"github.com/trimtab/trimtab"
)

// steps is into how many pieces the range up to the demand is divided.
const steps = 32

// Demand is an amount that is enough, declared by the operator.
type Demand struct {
	// Amount in the pool's unit, > 0.
	Amount float64
	// Target is the performance of the SLO, > 0.
	Target float64
	// Utility is the worth of a performance, not falling; nil: linear up to
	// the target.
	Utility func(performance float64) float64
}

// Validate returns an error that is trimtab.ErrInvalid.
func (d *Demand) Validate() error {
	if !(d.Amount > 0 && d.Amount <= greatest) || !(d.Target > 0 && d.Target <= greatest) {
		return trimtab.Invalidf("demand %v for a performance of %v: want numbers over 0", d.Amount, d.Target)
	}
	return nil
}

// Curve returns performance over the allocations from min to max (0 <= min < max), such that
// utility is linear up to the demand, at any load; nil if they are out of range.
func (d *Demand) Curve(load, min, max, level float64) *trimtab.Curve {
	shares := make([]float64, steps)
	for i := range shares {
		shares[i] = float64(i+1) / steps
	}
	c := curveOf(shares, d.Amount, span{min, max, level}, func(a float64) trimtab.Band {
		p := d.performance(math.Min(1, a/d.Amount))
		return trimtab.Band{Lower: p, Mean: p, Upper: p}
	})
	if c != nil {
		c.Load = load
	}
	return c
}

// performance returns the least performance that is worth a share of the target's worth.
func (d *Demand) performance(share float64) float64 {
	if d.Utility == nil || share >= 1 {
		return share * d.Target
	}
	low, high := 0.0, d.Target
	for range 50 {
		if mid := (low + high) / 2; d.Utility(mid) < share*d.Utility(d.Target) {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}
