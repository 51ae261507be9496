package calc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/forecast/auto"
	"github.com/trimtab/trimtab/analyzer/forecast/forecasttest"
)

// asked returns an input for that series.
func asked(name string, warmup int, series []float64) io.Reader {
	b, err := json.Marshal(map[string]any{"forecaster": name, "level": 0.9, "step_s": 10, "horizon": 12, "warmup": warmup, "series": series})
	if err != nil {
		panic(err)
	}
	return strings.NewReader(string(b))
}

func forecastOf(t *testing.T, in io.Reader) forecasts {
	t.Helper()
	out, err := Forecast(in)
	if err != nil {
		t.Fatal(err)
	}
	return out.(forecasts)
}

func TestForecastsBoundTheHighestOfTheComingRound(t *testing.T) {
	series := forecasttest.Load(1, 3000)
	for _, name := range auto.Names() {
		out := forecastOf(t, asked(name, 240, series))
		if n := len(series) - 240; len(out.Upper) != n || len(out.Mean) != n || len(out.Model) != n {
			t.Fatalf("%s: %d, %d, %d entries, want %d", name, len(out.Upper), len(out.Mean), len(out.Model), n)
		}
		held, all := 0, 0
		for i := 240; i+12 <= len(series); i++ {
			if all++; slices.Max(series[i:i+12]) <= out.Upper[i-240] {
				held++
			}
		}
		if share := float64(held) / float64(all); share < 0.88 || share > 0.93 {
			t.Errorf("%s: the bound held %.3f of the time", name, share)
		}
	}
}

func TestAForecastKnowsNothingOfWhatComesAfterIt(t *testing.T) {
	series := forecasttest.Load(2, 600)
	whole := forecastOf(t, asked("auto", 100, series))
	part := forecastOf(t, asked("auto", 100, series[:400]))
	for i := range part.Upper {
		if part.Upper[i] != whole.Upper[i] || part.Mean[i] != whole.Mean[i] || part.Model[i] != whole.Model[i] {
			t.Fatalf("forecast %d changes with what comes later", i)
		}
	}
}

func TestANullIsAMissingReport(t *testing.T) {
	out := forecastOf(t, strings.NewReader(`{"forecaster": "auto", "level": 0.9, "step_s": 10, "horizon": 2, "warmup": 2, "series": [5, null, null, 5, 5]}`))
	if len(out.Upper) != 3 || math.Abs(out.Mean[0]-5) > 1e-9 || out.Upper[0] < 5 {
		t.Errorf("%+v", out)
	}
}

func TestWhatCannotBeForecastIsANamedError(t *testing.T) {
	for in, want := range map[string]string{
		`"series": []`:                         "series: empty",
		`"warmup": 5, "series": [1, 2, 3]`:     "too short: 3 values, and a warmup of 5",
		`"warmup": 3, "series": [1, 2, 3]`:     "too short",
		`"warmup": 0, "series": [1, 2, 3]`:     "warmup 0: want at least 1",
		`"warmup": -4, "series": [1, 2, 3]`:    "warmup -4",
		`"series": [null, 2, 3]`:               "row 1: no value before it",
		`"series": [1, -2, 3]`:                 "row 1: load -2",
		`"series": [1, 2, 1e31]`:               "row 2: load 1e+31",
		`"level": 1, "series": [1, 2]`:         "level 1",
		`"level": 0, "series": [1, 2]`:         "level 0",
		`"horizon": 0, "series": [1, 2]`:       "horizon 0",
		`"horizon": 99999, "series": [1, 2]`:   "horizon 99999",
		`"step_s": 0, "series": [1, 2]`:        "step_s 0",
		`"step_s": 1e300, "series": [1, 2]`:    "step_s 1e+300",
		`"forecaster": "tea", "series": [1,2]`: `"tea": want one of auto, arma`,
		`"series": [1, "2"]`:                   `want a number, not "2"`,
		`"series": [1, 1e999]`:                 "out of range",
		`"serious": [1, 2]`:                    `unknown field "serious"`,
		`"warmup": 1`:                          `"series" is missing`,
	} {
		doc := "{" + in
		for key, value := range map[string]string{"forecaster": `"auto"`, "level": "0.9", "step_s": "10", "horizon": "12", "warmup": "1"} {
			if !strings.Contains(in, `"`+key+`"`) {
				doc += fmt.Sprintf(", %q: %s", key, value)
			}
		}
		_, err := Forecast(strings.NewReader(doc + "}"))
		if !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an invalid input with %q", in, err, want)
		}
	}
}

func FuzzForecast(f *testing.F) {
	f.Add(`{"forecaster": "auto", "level": 0.9, "step_s": 10, "horizon": 12, "warmup": 2, "series": [1, 2, null, 0, 1e30, 3e-300]}`)
	f.Add(`{"forecaster": "seasonal", "level": 1e-9, "step_s": 10800, "horizon": 1, "warmup": 1, "series": [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3]}`)
	f.Fuzz(func(t *testing.T, in string) {
		out, err := Forecast(strings.NewReader(in))
		if err != nil {
			if !errors.Is(err, trimtab.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		for i, upper := range out.(forecasts).Upper {
			if mean := out.(forecasts).Mean[i]; !(mean >= 0 && upper >= mean) || math.IsInf(upper, 0) {
				t.Fatalf("mean %v, upper %v", mean, upper)
			}
		}
	})
}
