// Package recall takes back what hosts that are lost have lent. A knob below its baseline lends the
// difference, on lease: when its host is lost the lease ends, the baseline comes back, and what
// others have above theirs no longer fits:
//
//	over = Σ believed_j − R, at most what lost hosts have lent
//	a_j <= now_j − (now_j − baseline_j) · over / Σ (now − baseline)
//
// The others are lowered in proportion to what they borrowed, never below their own baseline, and
// the guard has no say: the lease is running.
package recall

import "math"

// grain absorbs rounding: 1e-9 of a unit.
const grain = 1e-9

// Borrower is a knob that may have to give back.
type Borrower struct {
	// Now is what it has, Set what it is to have and Baseline its baseline, in the resource's unit.
	Now, Set, Baseline float64
}

// above returns how much it will have above its baseline.
func (b *Borrower) above() float64 { return math.Min(b.Now, b.Set) - b.Baseline }

// Sets returns what each will have, in whole units, if the pool is over its capacity by over;
// nil: no change.
func Sets(of []Borrower, over, unit float64) []float64 {
	borrowed := 0.0
	for i := range of {
		over -= math.Max(0, of[i].Now-of[i].Set)
		borrowed += math.Max(0, of[i].above())
	}
	if over < grain*unit || borrowed <= 0 {
		return nil
	}
	part, sets := math.Min(1, over/borrowed), make([]float64, len(of))
	for i := range of {
		b := &of[i]
		if sets[i] = b.Set; b.above() > 0 {
			sets[i] = math.Min(b.Set, math.Max(b.Baseline, math.Floor((b.Baseline+b.above()*(1-part))/unit+grain)*unit))
		}
	}
	return sets
}
