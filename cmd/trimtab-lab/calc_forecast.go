package main

import "github.com/trimtab/trimtab/lab/calc"

// calcForecastCmd is `trimtab-lab calc forecast`.
type calcForecastCmd struct{}

const forecastExample = `{"forecaster": "auto", "level": 0.9, "step_s": 10, "horizon": 2, "warmup": 3, "series": [40, 42, 39, 41, 45, 44]}`

// Example is shown by --help.
func (calcForecastCmd) Example() string {
	return "echo '" + forecastExample + "' | trimtab-lab calc forecast"
}

// Run computes.
func (calcForecastCmd) Run(t terminal) error { return calculate(t, calc.Forecast, forecastExample) }
