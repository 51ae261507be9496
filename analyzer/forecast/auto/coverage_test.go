package auto_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/analyzer/forecast/forecasttest"
)

// models prints which model was in use how often.
func models(row forecasttest.Row) string {
	var out []string
	for m, n := range row.Models {
		out = append(out, fmt.Sprintf("%s %.0f%%", m, 100*float64(n)/float64(row.Forecasts)))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// coverage judges "auto" on the recorded loads, at most limit reports of each,
// and prints its width against naive's.
func coverage(t *testing.T, limit int, least time.Duration) {
	plan := forecasttest.Plan{Horizon: 12, Level: 0.9, Warmup: 240}
	for _, tr := range traces() {
		if tr.step() < least {
			continue
		}
		series := tr.read(t, limit)
		row, err := forecasttest.Replay(fresh(t, "auto", tr.step()), series, plan)
		if err != nil {
			t.Fatal(err)
		}
		naive, err := forecasttest.Replay(fresh(t, "naive", tr.step()), series, plan)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-12s %6d forecasts: coverage %.3f, worst 180 rounds %.3f (one forecast a round %.3f), width %.2f of naive's; %s",
			tr.name, row.Forecasts, row.Coverage, row.Worst, row.Sparse, row.Width/naive.Width, models(row))
		if row.Coverage < 0.88 || row.Coverage > 0.93 || row.Worst < 0.83 {
			t.Errorf("%s: the bound does not hold its level: %v", tr.name, row)
		}
		if row.Width > 1.05*naive.Width {
			t.Errorf("%s: the bounds are wider than naive's: %v, naive %v", tr.name, row, naive)
		}
	}
}

func TestCoverageOnRecordedLoads(t *testing.T) { coverage(t, 8860, 10*time.Second) }
