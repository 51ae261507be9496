package calc

import (
	"io"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/forecast/auto"
	"github.com/trimtab/trimtab/analyzer/forecast/conformal"
)

// forecastInput is the series and what is asked of it. A null in the series
// is a report that is missing.
type forecastInput struct {
	Forecaster string     `json:"forecaster"`
	Level      float64    `json:"level"`
	Step       float64    `json:"step_s"`
	Horizon    int        `json:"horizon"`
	Warmup     int        `json:"warmup"`
	Series     []*float64 `json:"series"`
}

// forecasts holds one forecast for each report from the warm-up to the end.
type forecasts struct {
	Upper []float64 `json:"upper"`
	Mean  []float64 `json:"mean"`
	Model []string  `json:"model"`
}

// maxStep is the longest time between reports in seconds: a year.
const maxStep = 366 * 24 * 3600

// Forecast runs a forecaster over a series of loads:
//
//	in:  {"forecaster": "auto"|…, "level": 0.9, "step_s": 10, "horizon": 12, "warmup": n, "series": […]}
//	out: {"upper", "mean", "model"}
//
// with one entry for every t from the warm-up to the last report, made from
// the reports before t alone. See package forecast for what they mean, and
// package auto for the forecasters.
func Forecast(r io.Reader) (any, error) {
	var in forecastInput
	if err := Decode(r, &in); err != nil {
		return nil, err
	}
	f, err := in.forecaster()
	if err != nil {
		return nil, err
	}
	n := len(in.Series) - in.Warmup
	out := forecasts{Upper: make([]float64, 0, n), Mean: make([]float64, 0, n), Model: make([]string, 0, n)}
	for t, v := range in.Series {
		if t >= in.Warmup {
			next, ok := f.Forecast(in.Horizon, in.Level)
			if !ok {
				return nil, trimtab.Invalidf("row %d: no value before it to forecast from: a longer warmup is needed", t)
			}
			out.Upper, out.Mean, out.Model = append(out.Upper, next.Upper), append(out.Mean, next.Mean), append(out.Model, next.Model)
		}
		if v == nil {
			f.Skip(1)
		} else if err := f.Observe(*v); err != nil {
			return nil, trimtab.Invalidf("row %d: load %v: want 0 to %g", t, *v, conformal.Greatest)
		}
	}
	return out, nil
}

// forecaster checks what is asked and makes the forecaster for it.
func (in *forecastInput) forecaster() (*conformal.Forecaster, error) {
	n := len(in.Series)
	switch {
	case !(in.Step > 0 && in.Step <= maxStep):
		return nil, trimtab.Invalidf("step_s %v: want more than 0, at most %d", in.Step, maxStep)
	case in.Warmup < 1:
		return nil, trimtab.Invalidf("warmup %d: want at least 1: before the first value there is nothing to forecast from", in.Warmup)
	case n == 0:
		return nil, trimtab.Invalidf("series: empty")
	case in.Warmup >= n:
		return nil, trimtab.Invalidf("series: too short: %d values, and a warmup of %d leaves none to forecast", n, in.Warmup)
	}
	return auto.New(in.Forecaster, auto.Config{Horizon: in.Horizon, Level: in.Level, Step: time.Duration(in.Step * float64(time.Second))})
}
