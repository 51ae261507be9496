// Package forecast holds the seam behind which loads are forecast: given the
// loads reported so far, a bound for the highest load of the whole coming
// round, max(l[t+1..t+h]), that holds at its stated level, and the expected
// mean over it.
//
// Source: Cilantro (OSDI'23), section 4.1.2: policies plan for the upper
// confidence bound of the load. The subfolders hold the forecasters;
// forecasttest holds what each must satisfy.
package forecast

// Forecast is the forecast of the next h reports.
type Forecast struct {
	// Mean is the expected mean load, >= 0; Upper bounds the highest, >= Mean.
	Mean, Upper float64
	// Model names the model in use, "abstain" when none beats naive.
	Model string
}

// Forecaster forecasts one series of loads, reported at even intervals.
// Implementations are deterministic, hold bounded memory, and are not safe
// for concurrent use.
type Forecaster interface {
	// Name is the forecaster and its version, as in "arma/1".
	Name() string
	// Observe reads the next load. It returns an error that is
	// trimtab.ErrInvalid, and changes nothing, when the value is NaN,
	// infinite or negative.
	Observe(load float64) error
	// Skip says that the next n loads are missing, as when the interval had none. It does nothing
	// if n <= 0, or if the forecaster ignores the time of day.
	Skip(n int)
	// Forecast looks horizon >= 1 reports ahead; ok is false before the first
	// observation. Level in (0, 1) is the probability that the highest of
	// them is at most Upper.
	Forecast(horizon int, level float64) (f Forecast, ok bool)
	// Snapshot and Restore are as in learn.Learner.
	Snapshot() ([]byte, error)
	Restore(state []byte) error
}
