// Package smooth expects that a load stays at its exponentially smoothed
// level,
//
//	level[t] = level[t−1] + α (y[t] − level[t−1])
//
// with the α out of five whose mean of the next reports was off least, on the
// root scale of the package conformal.
//
// Source: R. G. Brown, Statistical Forecasting for Inventory Control, 1959.
// It knows neither trend nor season.
package smooth

import (
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/forecast/conformal"
)

const (
	// levels is how many smoothing constants there are, 2^-1 to 2^-levels.
	levels = 5
	// memory is how many reports the error of each is faded over.
	memory = 400
)

// Model is the point forecast; the zero value has seen nothing.
type Model struct{ state state }

type state struct {
	Level  [levels]float64 `json:"level"`
	Square [levels]float64 `json:"square"` // faded squared errors
	Seen   int             `json:"seen"`
}

var _ conformal.Model = (*Model)(nil)

// Name returns "smoothing".
func (m *Model) Name() string { return "smoothing" }

// See reads the latest of recent.
func (m *Model) See(recent []float64) {
	s := &m.state
	y := recent[len(recent)-1]
	s.Seen = min(s.Seen+1, math.MaxInt32)
	alpha := 1.0
	for i := range s.Level {
		alpha /= 2
		e := y - s.Level[i]
		if s.Seen > 1 {
			keep := 1 - 1/math.Min(float64(s.Seen), memory)
			s.Square[i] = keep*s.Square[i] + (1-keep)*e*e
		}
		// Until there are 1/α reports it is their mean.
		s.Level[i] += math.Max(alpha, 1/float64(s.Seen)) * e
	}
}

// Skip changes nothing.
func (m *Model) Skip(int) {}

// Ready is true after the first report.
func (m *Model) Ready() bool { return m.state.Seen > 0 }

// Path is the level of the constant that was off least.
func (m *Model) Path(int) (high, mean float64) {
	s := &m.state
	best := 0
	for i, e := range s.Square {
		if e < s.Square[best] {
			best = i
		}
	}
	return s.Level[best], s.Level[best]
}

// Clone returns a copy.
func (m *Model) Clone() conformal.Model { c := *m; return &c }

// State is for snapshots.
func (m *Model) State() any { return &m.state }

// Check refuses levels that no reports have.
func (m *Model) Check() error {
	for i, l := range m.state.Level {
		if !(math.Abs(l) <= 1e16 && m.state.Square[i] >= 0) || m.state.Seen < 0 {
			return trimtab.Invalidf("smoothing: level %v, error %v after %d reports", l, m.state.Square[i], m.state.Seen)
		}
	}
	return nil
}
