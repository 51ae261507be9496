package replicas

import "math"

// The bounds of a margin, how much a miss adds, and the default share of minutes that may be
// missed: a tenth of a minute a day and workload.
const (
	leastMargin, mostMargin, marginStep = 0.05, 0.3, 0.08
	missable                            = 0.1 / (24 * 60)
)

// usualMemory is over how many needs the mean is taken: six hours of one every 15 s.
const usualMemory = 6 * 240

// Margin is added to a need for what neither curve nor forecast shows, such as bursts of seconds.
// It is the same amount at any load, since misses happen where there is little beside the work,
// and a fraction of the need would be largest where the curve is surest. It is a share of the
// usual need u, and follows the misses that were seen:
//
//	m ← m + s (missed − β)     s = 0.08, 0.05 <= m <= 0.3
//	need + m u
//
// so that the share of missed minutes tends to β, whatever causes them, as long as the margin
// stays within its bounds.
//
// Source: adaptive conformal inference (Gibbs and Candès, NeurIPS 2021), on an amount instead of
// a level.
type Margin struct {
	Share float64 `json:"share"`
	// Usual is the mean need of some hours.
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

// Amount returns what is added.
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
