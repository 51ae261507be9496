package season

import (
	"math"

	"github.com/trimtab/trimtab"
)

// levels is the number of learning rates of the level, 0.4^1 to 0.4^levels, and memory over how
// many reports the error of each fades.
const levels, memory = 4, 400

// track follows the level without the season, at several learning rates, as package smooth does.
type track struct {
	Level  [levels]float64 `json:"level"`
	Square [levels]float64 `json:"square"` // faded squared errors
	Tried  int             `json:"tried"`
}

// follow updates the levels with a report without its season.
func (t *track) follow(rest float64) {
	t.Tried = min(t.Tried+1, math.MaxInt32)
	alpha := 1.0
	for i := range t.Level {
		alpha *= 0.4
		e := rest - t.Level[i]
		if t.Tried > 1 {
			keep := 1 - 1/math.Min(float64(t.Tried), memory)
			t.Square[i] = keep*t.Square[i] + (1-keep)*e*e
		}
		t.Level[i] += math.Max(alpha, 1/float64(t.Tried)) * e
	}
}

// best is the level that was off least.
func (t *track) best() float64 {
	best := 0
	for i, e := range t.Square {
		if e < t.Square[best] {
			best = i
		}
	}
	return t.Level[best]
}

// check refuses what follow could not have made.
func (t *track) check() error {
	for i, l := range t.Level {
		if !(math.Abs(l) <= 1e16 && t.Square[i] >= 0) || !counts(t.Tried) {
			return trimtab.Invalidf("season: level %v, error %v after %d reports", l, t.Square[i], t.Tried)
		}
	}
	return nil
}

// counts reports whether n is a possible value of a counter.
func counts(n int) bool { return n >= 0 && n <= math.MaxInt32 }
