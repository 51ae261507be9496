// Package auto names the forecasters and makes them: "auto", which uses the
// model of all whose bounds were sharpest lately, and each model alone, which
// abstains where it is no better than naive.
//
//	f, err := auto.New("auto", auto.Config{Horizon: 12, Level: 0.9, Step: 10 * time.Second})
//	err = f.Observe(41.5)
//	next, ok := f.Forecast(12, 0.9)
//
// Source: Cilantro (OSDI'23), section 5, for ARMA(1,1); the packages of the
// models for the others. What is computed is in the package conformal.
package auto

import (
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/forecast/arma"
	"github.com/trimtab/trimtab/analyzer/forecast/conformal"
	"github.com/trimtab/trimtab/analyzer/forecast/season"
	"github.com/trimtab/trimtab/analyzer/forecast/smooth"
)

// Config says which forecasts will be asked for.
type Config struct {
	// Horizon is the number of reports in a round, 1 to 1024.
	Horizon int
	// Level is the probability that the bound holds, in (0, 1).
	Level float64
	// Step is the time between reports, for the seasons; 0: no seasons.
	Step time.Duration
}

// Names returns the names that [New] takes.
func Names() []string { return []string{"auto", "arma", "smoothing", "seasonal", "naive"} }

// New returns a forecaster that has seen nothing. The error is
// trimtab.ErrInvalid when name or config have no sense.
func New(name string, c Config) (*conformal.Forecaster, error) {
	if !slices.Contains(Names(), name) {
		return nil, trimtab.Invalidf("make forecaster %.40q: want one of %s", name, strings.Join(Names(), ", "))
	}
	var models []conformal.Model
	if name == "auto" || name == "smoothing" {
		models = append(models, &smooth.Model{})
	}
	if name == "auto" || name == "arma" {
		models = append(models, &arma.Model{})
	}
	if name == "auto" || name == "seasonal" {
		if m := season.NewHourly(c.Step); m != nil {
			models = append(models, m)
		}
		for _, m := range []*season.Model{season.Daily(c.Step), season.Weekly(c.Step)} {
			if m != nil {
				models = append(models, m)
			}
		}
	}
	return conformal.New(name+"/2", conformal.Config{Horizon: c.Horizon, Level: c.Level}, models...)
}
