package replicas

import "math"

// The bounds of a margin, its growth after a missed minute, and the default fraction of minutes
// that may be missed: a tenth of a minute per day and workload.
const (
	leastMargin, mostMargin, marginStep = 0.05, 0.3, 0.08
	missable                            = 0.1 / (24 * 60)
)

// usualMemory is the number of observations over which the usual need is averaged: six hours with
// one every 15 s.
const usualMemory = 6 * 240

// Margin is added to a need for what neither the curve nor the forecast shows, such as bursts of
// seconds. It is the same amount at any load: misses happen where capacity beyond the work is
// small, and a fraction of the need would be largest where the curve is most certain. It is a share
// m of the usual need u, and follows the observed misses:
//
//	m ← m + s (missed − β)     s = 0.08, 0.05 <= m <= 0.3
//	need + m u
//
// The share of missed minutes thus tends to β, whatever causes the misses, as long as the margin
// stays within its bounds.
//
// Source: adaptive conformal inference (Gibbs and Candès, NeurIPS 2021), on an amount instead of a
// level.
type Margin struct {
	Share float64 `json:"share"`
	// Usual is the mean need over some hours.
	Usual float64 `json:"usual,omitempty"`
}

// Observe updates the margin after a minute in which the workload had what was planned for it.
func (m *Margin) Observe(missed bool) {
	by := -missable
	if missed {
		by += 1
	}
	m.Share = math.Min(math.Max(m.Share+marginStep*by, leastMargin), mostMargin)
}

// Amount returns the margin in the resource's unit.
func (m *Margin) Amount() float64 { return math.Max(m.Share, leastMargin) * m.Usual }

// Add returns the need with the margin.
func (m *Margin) Add(n Need) Need {
	if sane(n.Start) {
		if m.Usual == 0 {
			m.Usual = n.Start
		}
		m.Usual += (n.Start - m.Usual) / usualMemory
	}
	return Need{n.Round + m.Amount(), n.Start + m.Amount()}
}
