package arma

import (
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/forecast"
	"github.com/trimtab/trimtab/internal/num"
)

const (
	// window is how many reports the coefficients are fitted to.
	window = 512
	// every is how many reports lie between refits.
	every = 32
	// greatest bounds a load, so that no square overflows.
	greatest = 1e15
	// maxHorizon bounds the reports looked ahead; longer ones count as this.
	maxHorizon = 1024
	// sharper is how much smaller the loss of ARMA's bounds has to be.
	sharper = 0.99
)

// Config says what will be asked; other horizons and levels are answered too,
// more slowly.
type Config struct {
	// Horizon is the number of reports in a round, >= 1.
	Horizon int
	// Level is the probability that the bound holds, in (0, 1).
	Level float64
}

// ARMA is the forecaster; make one with [New]. It implements
// forecast.Forecaster.
type ARMA struct {
	config Config
	state  state
}

// state is all that a snapshot holds.
type state struct {
	Horizon int     `json:"horizon"`
	Level   float64 `json:"level"`
	// Y holds the latest reports on the root scale, oldest first.
	Y      []float64 `json:"y,omitempty"`
	Since  int       `json:"since"` // reports since the last refit
	Filter filter    `json:"filter"`
	// Miss is the share of misses to aim at, corrected by those that were.
	Miss float64 `json:"miss"`
	// Model and Naive follow how the two forecasts did.
	Model tracker `json:"model"`
	Naive tracker `json:"naive"`
}

var _ forecast.Forecaster = (*ARMA)(nil)

// New returns a forecaster that has seen nothing.
func New(c Config) (*ARMA, error) {
	if c.Horizon < 1 || c.Horizon > maxHorizon || !(c.Level > 0 && c.Level < 1) {
		return nil, trimtab.Invalidf("make arma: horizon %d, level %v: want 1 to %d and (0, 1)", c.Horizon, c.Level, maxHorizon)
	}
	return &ARMA{config: c, state: newState(c)}, nil
}

func newState(c Config) state {
	return state{Horizon: c.Horizon, Level: c.Level, Miss: 1 - c.Level,
		Model: newTracker(c.Horizon, c.Level), Naive: newTracker(c.Horizon, c.Level)}
}

// Name returns "arma/1".
func (a *ARMA) Name() string { return "arma/1" }

// Observe takes the next load in requests per second.
func (a *ARMA) Observe(load float64) error {
	if !(load >= 0 && load <= greatest) {
		return trimtab.Invalidf("observe load %v", load)
	}
	s := &a.state
	y := math.Sqrt(load)
	if len(s.Y) == 2*window {
		s.Y = append(s.Y[:0], s.Y[window:]...)
	}
	s.Y = append(s.Y, y)
	if s.Since++; s.Since >= every || len(s.Y) == every/2 {
		s.Since = 0
		s.Filter.refit(s.recent(window))
	}
	s.see(y)
	return nil
}

// see moves filter and trackers on by one report.
func (s *state) see(y float64) {
	s.Filter.step(y)
	for _, t := range []*tracker{&s.Model, &s.Naive} {
		if p, passed := t.see(y); passed && p.Used {
			s.correct(p.High > p.Bound)
		}
	}
	high, _ := s.Filter.path(s.Horizon)
	spread, use := s.Filter.spread(), s.useModel()
	s.Model.expect(high, spread, s.Miss, use)
	s.Naive.expect(y, spread, s.Miss, !use)
}

// correct moves the aim: after too many misses at fewer (Gibbs and Candès,
// equation 2).
func (s *state) correct(missed bool) {
	share := 0.0
	if missed {
		share = 1
	}
	s.Miss = math.Max(-0.2, math.Min(1, s.Miss+gamma*(margin*(1-s.Level)-share)))
}

// useModel reports whether ARMA's bounds were sharper than naive ones.
func (s *state) useModel() bool { return s.Model.Loss < sharper*s.Naive.Loss }

// recent returns the latest n reports, or all.
func (s *state) recent(n int) []float64 { return s.Y[max(0, len(s.Y)-n):] }

// Forecast looks horizon reports ahead.
func (a *ARMA) Forecast(horizon int, level float64) (forecast.Forecast, bool) {
	s := &a.state
	if len(s.Y) == 0 || horizon < 1 || !(level > 0 && level < 1) {
		return forecast.Forecast{}, false
	}
	horizon = min(horizon, maxHorizon)
	if horizon != s.Horizon || level != s.Level {
		other := s.replay(Config{horizon, level})
		s = &other
	}
	return s.forecast(), true
}

// replay follows the window again for another horizon or level, with the
// coefficients as they are.
func (s *state) replay(c Config) state {
	other := newState(c)
	other.Filter = filter{Mu: s.Filter.Mu, Phi: s.Filter.Phi, Theta: s.Filter.Theta}
	for _, y := range s.Y {
		other.Y = append(other.Y, y)
		other.see(y)
	}
	return other
}

func (s *state) forecast() forecast.Forecast {
	now := s.Y[len(s.Y)-1]
	if s.useModel() {
		high, mean := s.Filter.path(s.Horizon)
		return bounded(high+s.Model.quantile(s.Filter.spread(), s.Miss), mean*mean+s.Filter.Square, "arma(1,1)")
	}
	recent := s.recent(s.Horizon)
	mean := 0.0
	for _, y := range recent {
		mean += y * y / float64(len(recent))
	}
	return bounded(now+s.Naive.quantile(s.Filter.spread(), s.Miss), mean, "abstain")
}

func bounded(high, mean float64, model string) forecast.Forecast {
	high = math.Max(0, high)
	return forecast.Forecast{Mean: mean, Upper: math.Max(mean, high*high), Model: model}
}

// Snapshot returns the window, the coefficients and the scores, sealed.
func (a *ARMA) Snapshot() ([]byte, error) { return num.Seal(a.Name(), a.state) }

// Restore takes a snapshot of a forecaster of the same horizon and level.
func (a *ARMA) Restore(b []byte) error {
	var s state
	if err := num.Unseal(a.Name(), b, &s); err != nil {
		return fmt.Errorf("restore arma: %w: %w", trimtab.ErrInvalid, err)
	}
	if s.Horizon != a.config.Horizon || s.Level != a.config.Level {
		return trimtab.Invalidf("restore arma: horizon %d at level %v, want %d at %v", s.Horizon, s.Level, a.config.Horizon, a.config.Level)
	}
	for _, t := range []*tracker{&s.Model, &s.Naive} {
		if err := t.validate(s.Horizon, s.Level); err != nil {
			return fmt.Errorf("restore arma: %w", err)
		}
	}
	if len(s.Y) > 2*window || !s.Filter.stable() {
		return trimtab.Invalidf("restore arma: %d reports, coefficients %v, %v", len(s.Y), s.Filter.Phi, s.Filter.Theta)
	}
	a.state = s
	return nil
}
