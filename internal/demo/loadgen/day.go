package loadgen

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/trimtab/trimtab"
)

// Day is the load of one service over a day: a base, and one raised cosine
// that wraps around midnight.
type Day struct {
	// Base and Peak are requests per second, 0 <= Base <= Peak.
	Base, Peak float64
	// At is when the peak is, and Width how far its slopes reach to either
	// side, as shares of the day: At in [0, 1), Width in (0, 0.5].
	At, Width float64
}

// Rate returns the requests per second at the share x of the day.
//
//	Base + (Peak - Base) (1 + cos(π d/Width)) / 2 for the distance d < Width to the peak
func (d Day) Rate(x float64) float64 {
	off := math.Abs(math.Mod(x-d.At, 1))
	off = min(off, 1-off)
	if off >= d.Width {
		return d.Base
	}
	return d.Base + (d.Peak-d.Base)*(1+math.Cos(math.Pi*off/d.Width))/2
}

// Validate checks the ranges.
func (d Day) Validate() error {
	ok := d.Base >= 0 && d.Peak >= d.Base && d.Peak <= 1e6 && d.At >= 0 && d.At < 1 && d.Width > 0 && d.Width <= 0.5
	if !ok {
		return trimtab.Invalidf("day %+v: want 0 <= base <= peak, at in [0, 1), width in (0, 0.5]", d)
	}
	return nil
}

// arrivals draws the intended starts of a day that lasts length.
type arrivals struct {
	day    Day
	length time.Duration
	rand   *rand.Rand
	at     time.Duration
}

// next returns the next intended start after the beginning of the day, and
// false once the day is over.
func (a *arrivals) next() (time.Duration, bool) {
	if a.day.Peak <= 0 {
		return 0, false
	}
	for {
		a.at += time.Duration(a.rand.ExpFloat64() / a.day.Peak * float64(time.Second))
		if a.at >= a.length {
			return 0, false
		}
		if a.rand.Float64()*a.day.Peak < a.day.Rate(a.at.Seconds()/a.length.Seconds()) {
			return a.at, true
		}
	}
}
