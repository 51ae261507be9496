// Package season expects that a load goes on as it did at the same time of
// earlier periods, around its present level:
//
//	y[t+k] = level[t] + season(phase[t+k])
//	level[t] = level[t−1] + α (y[t] − season(phase[t]) − level[t−1])
//
// on the root scale of the package conformal. The season of a day or a week is
// kept in at most 672 bins (5 min of a day, 15 min of a week), linear in
// between; each moves by 0.3 towards its mean of every new period. That of an
// hour, what comes by the clock, is made of the minutes that stand out: see
// [Hourly].
//
// Source: P. R. Winters, Forecasting sales by exponentially weighted moving
// averages, Management Science 6, 1960, without the trend; L. Breiman, Better
// subset regression using the nonnegative garrote, Technometrics 37(4), 1995,
// for how the hour is shrunk. It is not ready before one whole period was
// seen. Phases are counted in reports; it knows no calendar.
package season

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/forecast/conformal"
)

const (
	// maxBins bounds the memory.
	maxBins = 672
	// pace is how far a bin moves to what a new period showed.
	pace = 0.3
)

// Model is the point forecast; make one with [New].
type Model struct {
	name string
	// period is in reports, bins is the most of them.
	period, bins int
	state        state
}

type state struct {
	// Phase is the number of the next report in its period.
	Phase int `json:"phase"`
	// Seen counts reports and those that were missing.
	Seen int `json:"seen"`
	// Bins is the season, Sum and Count what this period added to the bin
	// that is being filled.
	Bins  conformal.Singles `json:"bins"`
	Sum   float64           `json:"sum"`
	Count int               `json:"count"`
	track
}

var _ conformal.Model = (*Model)(nil)

// Daily returns the model of a day for reports that are step apart; nil when a
// day has fewer than 8 of them.
func Daily(step time.Duration) *Model { return of("seasonal(daily)", 24*time.Hour, step, 288) }

// Weekly returns the model of a week; nil as Daily.
func Weekly(step time.Duration) *Model { return of("seasonal(weekly)", 7*24*time.Hour, step, maxBins) }

func of(name string, period, step time.Duration, bins int) *Model {
	if step <= 0 || period/step < 8 {
		return nil
	}
	n := int((period + step/2) / step)
	m := &Model{name: name, period: n, bins: bins}
	m.state.Bins = make(conformal.Singles, min(bins, n))
	for i := range m.state.Bins {
		m.state.Bins[i] = float32(math.NaN())
	}
	return m
}

// Name returns "seasonal(daily)" or "seasonal(weekly)".
func (m *Model) Name() string { return m.name }

// bin returns where a phase lies between the bins.
func (m *Model) bin(phase int) float64 {
	return float64(phase) * float64(len(m.state.Bins)) / float64(m.period)
}

// at returns the season at a phase, linear between the middles of bins.
func (m *Model) at(phase int) float64 {
	n := len(m.state.Bins)
	x := m.bin(wrap(phase, m.period)) + 0.5/float64(m.period)*float64(n) - 0.5
	i := int(math.Floor(x))
	a, b := float64(m.state.Bins[wrap(i, n)]), float64(m.state.Bins[wrap(i+1, n)])
	return a + (x-float64(i))*(b-a)
}

func wrap(i, n int) int {
	if i %= n; i < 0 {
		i += n
	}
	return i
}

// See reads the latest of recent.
func (m *Model) See(recent []float64) {
	s := &m.state
	y := recent[len(recent)-1]
	if m.Ready() {
		s.follow(y - m.at(s.Phase))
	}
	s.Sum += y
	s.Count++
	m.advance(1)
}

// advance moves the phase by one and, at the end of a bin, the bin.
func (m *Model) advance(n int) {
	s := &m.state
	for range n {
		bin := int(m.bin(s.Phase))
		s.Phase = wrap(s.Phase+1, m.period)
		s.Seen = min(s.Seen+1, math.MaxInt32)
		if int(m.bin(s.Phase)) == bin {
			continue
		}
		if s.Count > 0 {
			mean := s.Sum / float64(s.Count)
			if old := float64(s.Bins[bin]); !math.IsNaN(old) {
				mean = old + pace*(mean-old)
			}
			s.Bins[bin] = float32(mean)
		}
		s.Sum, s.Count = 0, 0
	}
}

// Skip moves the phase on by n, or back.
func (m *Model) Skip(n int) {
	s := &m.state
	s.Sum, s.Count = 0, 0
	s.Phase = wrap(s.Phase+n%m.period, m.period)
	if n > 0 {
		s.Seen = min(s.Seen+min(n, math.MaxInt32), math.MaxInt32)
	}
}

// Ready is true when the whole season is known.
func (m *Model) Ready() bool {
	s := &m.state
	return s.Seen > m.period && (s.Tried > 0 || !slices.ContainsFunc(s.Bins, func(v float32) bool { return v != v }))
}

// Path is the level that was off least, and the season on it.
func (m *Model) Path(h int) (high, mean float64) {
	level := m.state.best()
	high = math.Inf(-1)
	for k := range h {
		v := level + m.at(m.state.Phase+k)
		high = math.Max(high, v)
		mean += v / float64(h)
	}
	return high, math.Max(0, mean)
}

// Clone returns a copy.
func (m *Model) Clone() conformal.Model {
	c := *m
	c.state.Bins = slices.Clone(m.state.Bins)
	return &c
}

// State is for snapshots.
func (m *Model) State() any { return &m.state }

// Check refuses what See could not have made.
func (m *Model) Check() error {
	s := &m.state
	if len(s.Bins) != min(m.bins, m.period) || s.Phase < 0 || s.Phase >= m.period || !counts(s.Seen) ||
		s.Count < 0 || s.Count > m.period || !(s.Sum >= 0 && s.Sum <= 1e20) {
		return trimtab.Invalidf("season: %d bins, phase %d of %d after %d reports", len(s.Bins), s.Phase, m.period, s.Seen)
	}
	for _, v := range s.Bins {
		if s.Tried > 0 && v != v || v < 0 || v > 1e16 {
			return trimtab.Invalidf("season: bin %v", v)
		}
	}
	return s.track.check()
}
