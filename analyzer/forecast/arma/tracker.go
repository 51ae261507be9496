package arma

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab"
)

const (
	// rounds is how many horizons of scores the quantile is taken over, up to
	// maxScores scores; fewScores are needed before it is trusted alone.
	rounds, maxScores, fewScores = 60, 1024, 80
	// gamma is the pace at which the level is corrected per report.
	gamma = 0.005
	// margin is the share of the allowed misses that is aimed at: the
	// correction comes a round late.
	margin = 0.95
)

// tracker follows one point forecast of the highest of the next h reports,
// and knows by how much to raise it so that it is exceeded just so often.
type tracker struct {
	Horizon int     `json:"horizon"`
	Level   float64 `json:"level"`
	// Pending holds the forecasts whose horizon has not passed, oldest first.
	Pending []pending `json:"pending,omitempty"`
	// Scores are highest minus forecast, oldest first.
	Scores []float64 `json:"scores,omitempty"`
	// Loss is the faded pinball loss of the bound.
	Loss   float64 `json:"loss"`
	Judged int     `json:"judged"`
	sorted []float64
}

// pending is a forecast that waits for its reports.
type pending struct {
	Base  float64 `json:"base"`
	Bound float64 `json:"bound"`
	High  float64 `json:"high"` // the highest report since
	Seen  int     `json:"seen"`
	// Used tells that this was the bound given out.
	Used bool `json:"used,omitempty"`
}

func newTracker(horizon int, level float64) tracker {
	return tracker{Horizon: horizon, Level: level}
}

// see takes report y, and returns the forecast whose horizon passed with it,
// if there is one, scored.
func (t *tracker) see(y float64) (p pending, passed bool) {
	for i := range t.Pending {
		p := &t.Pending[i]
		if p.Seen == 0 || y > p.High {
			p.High = y
		}
		p.Seen++
	}
	if len(t.Pending) == 0 || t.Pending[0].Seen < t.Horizon {
		return p, false
	}
	p = t.Pending[0]
	t.Pending = append(t.Pending[:0], t.Pending[1:]...)
	t.judge(p)
	return p, true
}

// expect takes the forecast of the reports to come.
func (t *tracker) expect(base, spread, miss float64, used bool) {
	t.Pending = append(t.Pending, pending{Base: base, Bound: base + t.quantile(spread, miss), Used: used})
}

// judge scores a forecast whose horizon has passed.
func (t *tracker) judge(p pending) {
	loss := (p.Bound - p.High) * (1 - t.Level)
	if p.High > p.Bound {
		loss = (p.High - p.Bound) * t.Level
	}
	t.Judged = min(t.Judged+1, math.MaxInt32)
	keep := math.Min(1-1/(10*float64(t.Horizon)), 1-1/float64(t.Judged))
	t.Loss = keep*t.Loss + (1-keep)*loss
	t.keep(p.High - p.Base)
}

// keep adds a score to the window.
func (t *tracker) keep(score float64) {
	t.sort()
	if len(t.Scores) >= min(maxScores, max(2*fewScores, rounds*t.Horizon)) {
		i, _ := slices.BinarySearch(t.sorted, t.Scores[0])
		t.sorted = slices.Delete(t.sorted, i, i+1)
		t.Scores = append(t.Scores[:0], t.Scores[1:]...)
	}
	t.Scores = append(t.Scores, score)
	i, _ := slices.BinarySearch(t.sorted, score)
	t.sorted = slices.Insert(t.sorted, i, score)
}

// sort rebuilds the sorted scores after a restore.
func (t *tracker) sort() {
	if len(t.sorted) != len(t.Scores) {
		t.sorted = slices.Clone(t.Scores)
		slices.Sort(t.sorted)
	}
}

// quantile returns how far above the forecast the bound is that aims at the
// given share of misses. While there are few scores it is at least what noise
// that partly persists reaches.
func (t *tracker) quantile(spread, miss float64) float64 {
	t.sort()
	n := len(t.sorted)
	walk := spread * (1.5 + 0.6*math.Sqrt(float64(t.Horizon)))
	if n == 0 {
		return walk
	}
	rank := int(math.Ceil(float64(n+1)*(1-miss))) - 1
	q := t.sorted[max(0, min(n-1, rank))]
	if miss <= 0 || rank >= n {
		// Even the highest score is crossed too often.
		q = t.sorted[n-1] + math.Max(0, -miss)*10*spread
	}
	if n < fewScores {
		share := float64(n) / fewScores
		q = math.Max(q, q*share+walk*(1-share))
	}
	return q
}

// validate refuses what see could not have made.
func (t *tracker) validate(horizon int, level float64) error {
	if t.Horizon != horizon || t.Level != level || len(t.Pending) > horizon || len(t.Scores) > maxScores {
		return trimtab.Invalidf("tracker: horizon %d, level %v, %d pending, %d scores", t.Horizon, t.Level, len(t.Pending), len(t.Scores))
	}
	return nil
}
