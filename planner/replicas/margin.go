package replicas

import "math"

// The bounds of a margin, how much a miss adds, and the share of minutes that may be
// missed where nothing else is said: half a minute a day and workload.
const (
	mostMargin, marginStep = 0.3, 0.01
	missable               = 0.5 / (24 * 60)
)

// Margin is what is added to a need, as a share of it, for what no curve and no forecast
// knows, such as bursts of seconds. It follows the misses that were seen:
//
//	m ← m + s (missed − β)     s = 0.01, 0 <= m <= 0.3
//
// so that the share of missed minutes goes to β, whatever causes them, as long as the
// margin stays within its bounds.
//
// Source: adaptive conformal inference (Gibbs and Candès, NeurIPS 2021), on a share of the
// need instead of a level.
type Margin struct {
	Share float64 `json:"share"`
}

// Observe takes in a minute in which the workload had what was planned for it.
func (m *Margin) Observe(missed bool) {
	by := -missable
	if missed {
		by += 1
	}
	m.Share = math.Min(math.Max(m.Share+marginStep*by, 0), mostMargin)
}

// Add returns the need with the margin.
func (m *Margin) Add(n Need) Need { return Need{n.Round * (1 + m.Share), n.Start * (1 + m.Share)} }
