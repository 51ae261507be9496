package season

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/forecast/conformal"
)

const (
	// minutes is the number of bins in an hour: the clock's minutes, shifted by when the first
	// report lay in its minute.
	minutes = 60
	// around is how many bins on each side make the level that a bin is compared with.
	around = 15
	// doubt is how many times its variance the square of a bin's season must be to count at all:
	// two standard deviations.
	doubt = 4
	// scatter is how many bins the noise is faded over.
	scatter = 4 * minutes
)

// Hourly expects that loads which come by the clock come again: jobs at the full hour, at its
// quarters, every ten minutes. Each minute of the hour has its deviation from the half hour
// around it, of which only what exceeds the noise counts, so that one hour proves no more than
// one hour can:
//
//	season = S max(0, 1 − 4 Var S / S²),  S ← S + p (y − level − S)
//
// with p = 1, 1/2, 1/3 in the first periods and 0.3 then. An hour has a whole number of reports:
// otherwise the season shifts by less than half a report an hour, which p follows. Make one with
// [NewHourly].
type Hourly struct {
	period int // in reports
	state  hours
	// season is computed from the state; again is how many of the coming reports were seen and
	// learnt before.
	season [minutes]float64
	again  int
}

// hours is all of an Hourly.
type hours struct {
	track
	// Phase is the number of the next report in its hour, Seen counts them and
	// those that were missing.
	Phase int `json:"phase"`
	Seen  int `json:"seen"`
	// Sum and Count are of the bin that is being filled, Recent the means of
	// the latest bins, newest last; NaN: missing.
	Sum    float64          `json:"sum"`
	Count  int              `json:"count"`
	Recent conformal.Floats `json:"recent"`
	// Bins is S, and Share its variance as a share of Noise, that of one bin of one hour; 0
	// before there is one.
	Bins  conformal.Floats `json:"bins"`
	Share conformal.Floats `json:"share"`
	Noise float64          `json:"noise"`
	Held  int              `json:"held"` // bins that Noise was told of
}

var _ conformal.Model = (*Hourly)(nil)

// NewHourly returns the model for reports that are step apart; nil when a
// minute has none.
func NewHourly(step time.Duration) *Hourly {
	if step <= 0 || step > time.Minute {
		return nil
	}
	return &Hourly{period: int((time.Hour + step/2) / step),
		state: hours{Bins: make(conformal.Floats, minutes), Share: make(conformal.Floats, minutes)}}
}

// Name returns "seasonal(hourly)".
func (m *Hourly) Name() string { return "seasonal(hourly)" }

// bin returns the bin of a phase.
func (m *Hourly) bin(phase int) int { return wrap(phase, m.period) * minutes / m.period }

// See reads the latest of recent.
func (m *Hourly) See(recent []float64) {
	s := &m.state
	y := recent[len(recent)-1]
	s.follow(y - m.season[m.bin(s.Phase)])
	s.Sum += y
	s.Count++
	m.advance()
}

// advance moves the phase by one and, at the end of a bin, the season.
func (m *Hourly) advance() {
	s := &m.state
	bin := m.bin(s.Phase)
	s.Phase = wrap(s.Phase+1, m.period)
	s.Seen = min(s.Seen+1, math.MaxInt32)
	again := m.again > 0
	m.again = max(0, m.again-1)
	if m.bin(s.Phase) == bin {
		return
	}
	mean := math.NaN()
	if s.Count > 0 {
		mean = s.Sum / float64(s.Count)
	}
	s.Sum, s.Count = 0, 0
	if s.Recent = append(s.Recent, mean); len(s.Recent) > 2*around+1 {
		s.Recent = slices.Delete(s.Recent, 0, 1)
	}
	if len(s.Recent) == 2*around+1 && !again {
		m.learn(wrap(bin-around, minutes))
	}
}

// learn learns the bin in the middle of the recent ones.
func (m *Hourly) learn(bin int) {
	s := &m.state
	level, n := 0.0, 0.0
	for _, v := range s.Recent {
		if v == v {
			level += v
			n++
		}
	}
	v := s.Recent[around]
	if v != v || n <= around {
		return
	}
	rest := v - level/n
	off, share := rest-s.Bins[bin], s.Share[bin]
	p := 1.0
	if share > 0 {
		p = math.Max(pace, share/(1+share))
	}
	// The first value of a bin counts as noise: only a second one can show that it recurs.
	s.Held = min(s.Held+1, math.MaxInt32)
	keep := 1 - 1/math.Min(float64(s.Held), scatter)
	s.Noise = keep*s.Noise + (1-keep)*off*off/(1+share)
	s.Bins[bin] += p * off
	s.Share[bin] = (1-p)*(1-p)*share + p*p
	m.shrink()
}

// shrink computes the season from what exceeds the noise.
func (m *Hourly) shrink() {
	s := &m.state
	for i, v := range s.Bins {
		m.season[i] = 0
		if square := v * v; s.Share[i] > 0 && square > doubt*s.Noise*s.Share[i] {
			m.season[i] = v * (1 - doubt*s.Noise*s.Share[i]/square)
		}
	}
}

// Skip moves the phase on by n, over unknown bins, or back to reports that come again.
func (m *Hourly) Skip(n int) {
	s := &m.state
	if n >= 0 && n < m.period {
		for range n {
			m.advance()
		}
		return
	}
	s.Sum, s.Count, s.Recent = 0, 0, s.Recent[:0]
	s.Phase = wrap(s.Phase+n%m.period, m.period)
	s.Seen = min(s.Seen+min(max(0, n), math.MaxInt32), math.MaxInt32)
	m.again = max(0, -n)
}

// Ready is true after the first hour.
func (m *Hourly) Ready() bool { return m.state.Seen > m.period }

// Path is the level that was off least, and the season on it.
func (m *Hourly) Path(h int) (high, mean float64) {
	level := m.state.best()
	high = math.Inf(-1)
	for k := range h {
		v := level + m.season[m.bin(m.state.Phase+k)]
		high = math.Max(high, v)
		mean += v / float64(h)
	}
	return high, math.Max(0, mean)
}

// Clone returns a copy.
func (m *Hourly) Clone() conformal.Model {
	c := *m
	c.state.Recent = slices.Clone(m.state.Recent)
	c.state.Bins = slices.Clone(m.state.Bins)
	c.state.Share = slices.Clone(m.state.Share)
	return &c
}

// State is for snapshots.
func (m *Hourly) State() any { return &m.state }

// Check refuses a state that See could not have made, and computes the season from a valid one.
func (m *Hourly) Check() error {
	s := &m.state
	if len(s.Bins) != minutes || len(s.Share) != minutes || len(s.Recent) > 2*around+1 || s.Phase < 0 || s.Phase >= m.period ||
		!counts(s.Seen) || !counts(s.Held) || s.Count < 0 || s.Count > m.period || !(s.Sum >= 0 && s.Sum <= 1e20) || !(s.Noise >= 0 && s.Noise <= 1e32) {
		return trimtab.Invalidf("hourly season: %d bins, phase %d of %d after %d reports", len(s.Bins), s.Phase, m.period, s.Seen)
	}
	for i, v := range s.Bins {
		if !(math.Abs(v) <= 1e16 && s.Share[i] >= 0 && s.Share[i] <= 1) {
			return trimtab.Invalidf("hourly season: bin %v, share %v", v, s.Share[i])
		}
	}
	for _, v := range s.Recent {
		if v < 0 || v > 1e16 {
			return trimtab.Invalidf("hourly season: recent bin %v", v)
		}
	}
	m.shrink()
	return s.track.check()
}
