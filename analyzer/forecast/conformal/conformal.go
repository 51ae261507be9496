package conformal

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/forecast"
)

const (
	// window is the least number of reports that models use. Up to spare more are kept, so that
	// moving them is rare.
	window, spare = 512, 64
	// Greatest bounds a load, so that no square overflows.
	Greatest = 1e30
	// MaxHorizon bounds the reports looked ahead; longer ones count as this.
	MaxHorizon = 1024
	// lossRounds is the memory of the loss, in horizons.
	lossRounds = rounds
	// sharper is by what factor a model's loss must be smaller than naive's, and better by what
	// factor smaller than that of the model in use.
	sharper, better = 0.97, 0.95
	// gamma is the pace at which the aim is corrected, per report: faster
	// evens out the misses sooner and widens the bounds.
	gamma = 0.005
	// least and most bound the share of misses that is aimed at: below 0 the
	// bound lies over every score.
	least, most = -0.2, 0.6
)

// Config says which forecasts will be asked for; other horizons and levels are answered too, more
// slowly.
type Config struct {
	// Horizon is the number of reports in a round, >= 1.
	Horizon int `json:"horizon"`
	// Level is the probability that the bound holds, in (0, 1).
	Level float64 `json:"level"`
}

// Validate returns an error that is trimtab.ErrInvalid.
func (c Config) Validate() error {
	if c.Horizon < 1 || c.Horizon > MaxHorizon || !(c.Level > 0 && c.Level < 1) {
		return trimtab.Invalidf("make forecaster: horizon %d, level %v: want 1 to %d and (0, 1)", c.Horizon, c.Level, MaxHorizon)
	}
	return nil
}

// Forecaster bounds the highest of the next reports with the best of its
// models; make one with [New]. It implements forecast.Forecaster.
type Forecaster struct {
	name   string
	models []Model // the first is naive
	state  state
}

// state is all of a forecaster except the models' states.
type state struct {
	Config
	// Y holds the latest reports on the root scale, oldest first.
	Y Floats `json:"y,omitempty"`
	// Trackers are one for each model.
	Trackers []tracker `json:"trackers"`
	// Given are the bounds given out whose horizon has not passed.
	Given Floats `json:"given,omitempty"`
	// Used is the model in use; 0, naive, is to abstain.
	Used int `json:"used"`
	// Miss is the share of misses to aim at, corrected by those that were.
	Miss float64 `json:"miss"`
	// Square is the faded mean of the squared error of the next report.
	Square float64 `json:"square"`
	Seen   int     `json:"seen"`
	// Gap is how many reports were missing in a row.
	Gap int `json:"gap"`
}

var _ forecast.Forecaster = (*Forecaster)(nil)

// New returns an empty forecaster with these models and naive; it owns them from now on. Name
// returns the name.
func New(name string, c Config, models ...Model) (*Forecaster, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	f := &Forecaster{name: name, models: append([]Model{Naive()}, models...)}
	f.state = newState(c, len(f.models))
	return f, nil
}

func newState(c Config, models int) state {
	return state{Config: c, Miss: 1 - c.Level, Trackers: make([]tracker, models)}
}

// Name is the name given to [New].
func (f *Forecaster) Name() string { return f.name }

// Observe reads the next load in requests per second.
func (f *Forecaster) Observe(load float64) error {
	if !(load >= 0 && load <= Greatest) {
		return trimtab.Invalidf("observe load %v", load)
	}
	f.see(math.Sqrt(load))
	return nil
}

// Skip says that n reports are missing. Seasons continue; forecasts across a gap of a whole round
// are not scored. It does nothing if n <= 0.
func (f *Forecaster) Skip(n int) {
	if n <= 0 {
		return
	}
	s := &f.state
	s.Gap = min(s.Gap, MaxHorizon) + min(n, MaxHorizon)
	for i, m := range f.models {
		m.Skip(n)
		if s.Gap >= s.Horizon {
			s.Trackers[i].void()
		}
	}
	for i := range s.Given {
		if s.Gap >= s.Horizon {
			s.Given[i] = math.NaN()
		}
	}
}

func (f *Forecaster) see(y float64) {
	s := &f.state
	f.surprise(y)
	keep := max(window, s.Horizon)
	if s.Y == nil {
		s.Y = make(Floats, 0, keep+spare)
	}
	if len(s.Y) >= keep+spare { // more in a snapshot of an earlier version
		s.Y = slices.Delete(s.Y, 0, len(s.Y)-keep)
	}
	s.Y = append(s.Y, y)
	s.Gap = 0
	f.judge()
	for _, m := range f.models {
		m.See(s.Y)
	}
	s.Used = f.choose()
	given := math.NaN()
	for i := range f.models {
		base, bound := f.bound(i)
		s.Trackers[i].expect(base, bound)
		if i == s.Used {
			given = bound
		}
	}
	s.Given = append(s.Given, given)
}

// bound returns model i's forecast of the coming round, on the root scale: the highest of its
// path, and the bound for the highest load. Both are NaN if it is not ready.
func (f *Forecaster) bound(i int) (base, bound float64) {
	s := &f.state
	if !f.models[i].Ready() {
		return math.NaN(), math.NaN()
	}
	base, _ = f.models[i].Path(s.Horizon)
	return base, base + s.Trackers[i].quantile(s.Horizon, f.spread(), s.Miss)
}

// surprise follows how far the next report is from where the model in use
// expected it.
func (f *Forecaster) surprise(y float64) {
	s := &f.state
	if m := f.models[s.Used]; s.Seen > 0 && m.Ready() {
		next, _ := m.Path(1)
		keep := math.Min(0.98, 1-1/float64(s.Seen))
		s.Square = keep*s.Square + (1-keep)*(y-next)*(y-next)
	}
	s.Seen = min(s.Seen+1, math.MaxInt32)
}

// judge scores the forecasts whose horizon passed with the latest report.
func (f *Forecaster) judge() {
	s := &f.state
	if len(s.Given) < s.Horizon {
		return
	}
	high := slices.Max(s.Y[len(s.Y)-s.Horizon:])
	for i := range s.Trackers {
		t := &s.Trackers[i]
		if base, bound := t.due(); !math.IsNaN(base) {
			t.judge(&s.Config, base, bound, high)
		}
	}
	given := s.Given[0]
	s.Given = slices.Delete(s.Given, 0, 1)
	if math.IsNaN(given) {
		return
	}
	// Gibbs and Candès, equation 2: after a miss, aim at fewer.
	miss := 0.0
	if high > given {
		miss = 1
	}
	s.Miss = math.Max(least, math.Min(most, s.Miss+gamma*(1-s.Level-miss)))
}

// choose returns the model with the least loss; the one in use while no other
// is better by a margin; naive while none is sharper than that.
func (f *Forecaster) choose() int {
	s := &f.state
	loss := func(i int) float64 {
		t := &s.Trackers[i]
		if !f.models[i].Ready() || t.Judged < fewScores {
			return math.Inf(1)
		}
		return t.Loss
	}
	if s.Trackers[0].perfect() {
		return 0
	}
	best := s.Used
	for i := 1; i < len(f.models); i++ {
		if best == 0 || loss(i) < better*loss(best) {
			best = i
		}
	}
	if best > 0 && loss(best) < sharper*s.Trackers[0].Loss {
		return best
	}
	return 0
}

// spread returns the standard deviation of the next report; with few reports, at least a guess
// from the level: counting noise and 12% of the load.
func (f *Forecaster) spread() float64 {
	s := &f.state
	spread := math.Sqrt(s.Square)
	if s.Seen < 8 {
		return math.Max(spread, 0.3+0.06*s.Y[len(s.Y)-1])
	}
	return spread
}

// Forecast looks horizon reports ahead.
func (f *Forecaster) Forecast(horizon int, level float64) (forecast.Forecast, bool) {
	if len(f.state.Y) == 0 || horizon < 1 || !(level > 0 && level < 1) {
		return forecast.Forecast{}, false
	}
	c := Config{Horizon: min(horizon, MaxHorizon), Level: level}
	if c != f.state.Config {
		f = f.replay(c)
	}
	return f.forecast(), true
}

// replay runs the kept reports again, for another horizon or level, with the models as they are.
func (f *Forecaster) replay(c Config) *Forecaster {
	other := &Forecaster{state: newState(c, len(f.models))}
	for _, m := range f.models {
		other.models = append(other.models, m.Clone())
	}
	y := f.state.Y
	for _, m := range other.models {
		m.Skip(-len(y))
	}
	for _, v := range y {
		other.see(v)
	}
	return other
}

func (f *Forecaster) forecast() forecast.Forecast {
	s := &f.state
	_, high := f.bound(s.Used)
	if s.Used == 0 {
		recent := s.Y[max(0, len(s.Y)-s.Horizon):]
		mean := 0.0
		for _, y := range recent {
			mean += y * y / float64(len(recent))
		}
		if len(f.models) == 1 {
			// It was asked for, and is no refusal.
			return bounded(high, s.Y[len(s.Y)-1]*s.Y[len(s.Y)-1], "naive")
		}
		return bounded(high, mean, "abstain")
	}
	m := f.models[s.Used]
	_, mean := m.Path(s.Horizon)
	return bounded(high, mean*mean+s.Square, m.Name())
}

func bounded(high, mean float64, model string) forecast.Forecast {
	// The root of a load, squared, may be a bit under it.
	high = math.Max(0, high) * (1 + 1e-12)
	return forecast.Forecast{Mean: mean, Upper: math.Max(mean, high*high), Model: model}
}
