package conformal

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab"
)

const (
	// rounds is how many horizons of scores the quantile is taken over, up to
	// maxScores scores; fewScores are needed before it is trusted alone.
	rounds, maxScores, fewScores = 60, 1024, 80
)

// tracker follows the forecasts of one model, and computes by how much to raise its highest value
// so that the wanted share of loads exceeds it.
type tracker struct {
	// Base and Bound are the forecasts whose horizon has not passed, oldest first: the highest of
	// the path, and the bound made from it. NaN marks those that are not scored.
	Base  Floats `json:"base,omitempty"`
	Bound Floats `json:"bound,omitempty"`
	// Scores are highest minus base, oldest first.
	Scores Singles `json:"scores,omitempty"`
	// Loss is the faded pinball loss of the bound.
	Loss   float64 `json:"loss"`
	Judged int     `json:"judged"`
	sorted []float32
}

// capacity is how many scores are kept for a horizon.
func capacity(horizon int) int { return min(maxScores, max(2*fewScores, rounds*horizon)) }

// expect takes the forecast of the reports to come.
func (t *tracker) expect(base, bound float64) {
	t.Base, t.Bound = append(t.Base, base), append(t.Bound, bound)
}

// void marks all forecasts that wait as not to be judged.
func (t *tracker) void() {
	for i := range t.Base {
		t.Base[i], t.Bound[i] = math.NaN(), math.NaN()
	}
}

// due removes the oldest forecast.
func (t *tracker) due() (base, bound float64) {
	base, bound = t.Base[0], t.Bound[0]
	t.Base, t.Bound = slices.Delete(t.Base, 0, 1), slices.Delete(t.Bound, 0, 1)
	return base, bound
}

// judge scores a forecast whose horizon has passed, with high as its highest.
func (t *tracker) judge(c *Config, base, bound, high float64) {
	loss := (bound - high) * (1 - c.Level)
	if high > bound {
		loss = (high - bound) * c.Level
	}
	t.Judged = min(t.Judged+1, math.MaxInt32)
	keep := math.Min(1-1/(lossRounds*float64(c.Horizon)), 1-1/float64(t.Judged))
	t.Loss = keep*t.Loss + (1-keep)*loss
	t.keep(high-base, capacity(c.Horizon))
}

// keep adds a score, rounded up, to the latest n.
func (t *tracker) keep(score float64, n int) {
	t.sort()
	if len(t.Scores) >= n {
		i, _ := slices.BinarySearch(t.sorted, t.Scores[0])
		t.sorted = slices.Delete(t.sorted, i, i+1)
		t.Scores = slices.Delete(t.Scores, 0, 1)
	}
	s := float32(score)
	if float64(s) < score {
		s = math.Nextafter32(s, math.MaxFloat32)
	}
	t.Scores = append(t.Scores, s)
	i, _ := slices.BinarySearch(t.sorted, s)
	t.sorted = slices.Insert(t.sorted, i, s)
}

// sort rebuilds the sorted scores after a restore.
func (t *tracker) sort() {
	if len(t.sorted) != len(t.Scores) {
		t.sorted = slices.Clone([]float32(t.Scores))
		slices.Sort(t.sorted)
	}
}

// perfect reports whether all scores are equal, so that the bound equals the load: none can be
// sharper.
func (t *tracker) perfect() bool {
	n := len(t.sorted)
	return n >= fewScores && t.sorted[0] == t.sorted[n-1]
}

// quantile returns how far above the path a bound is that aims at the given share of misses. With
// few scores it is at least what noise of that spread, which partly persists, reaches in h
// reports.
func (t *tracker) quantile(h int, spread, miss float64) float64 {
	t.sort()
	n := len(t.sorted)
	walk := spread * (1.5 + 0.6*math.Sqrt(float64(h)))
	if n == 0 {
		return walk
	}
	// The rank is not whole: between two scores the bound is between them.
	rank := float64(n+1)*(1-miss) - 1
	q := at(t.sorted, rank)
	if over := rank - float64(n-1); over > 0 {
		// Even the highest score is crossed too often.
		q = float64(t.sorted[n-1]) + over/float64(n)*10*spread
	}
	if n < fewScores {
		share := float64(n) / fewScores
		q = math.Max(q, q*share+walk*(1-share))
	}
	return q
}

// at interpolates between the sorted values.
func at(sorted []float32, rank float64) float64 {
	rank = math.Max(0, math.Min(float64(len(sorted)-1), rank))
	i := int(rank)
	lo := float64(sorted[i])
	if i+1 == len(sorted) {
		return lo
	}
	return lo + (rank-float64(i))*(float64(sorted[i+1])-lo)
}

// check refuses what judge could not have made.
func (t *tracker) check(c *Config) error {
	if len(t.Base) != len(t.Bound) || len(t.Base) > c.Horizon || len(t.Scores) > capacity(c.Horizon) || t.Judged < 0 || t.Judged > math.MaxInt32 || !(t.Loss >= 0) {
		return trimtab.Invalidf("tracker: %d and %d pending, %d scores, loss %v of %d", len(t.Base), len(t.Bound), len(t.Scores), t.Loss, t.Judged)
	}
	for _, s := range t.Scores {
		if s != s || math.IsInf(float64(s), 0) {
			return trimtab.Invalidf("tracker: score %v", s)
		}
	}
	return nil
}
