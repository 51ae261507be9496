package trial_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/internal/trial"
)

func TestATrialTriesAsManyCasesAsAskedForAndReportsThem(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trials")
	t.Setenv(trial.CasesEnv, "100")
	t.Setenv(trial.SeedEnv, "7")
	t.Setenv(trial.ReportEnv, file)
	var first uint64
	t.Run("first", func(t *testing.T) {
		tr := trial.Start(t, 3)
		first = tr.Rand.Uint64()
		for i := range tr.N {
			tr.Took(time.Duration(i+1) * time.Second)
		}
		tr.Notef("a figure of %d", 5)
	})
	t.Run("second", func(t *testing.T) {
		if tr := trial.Start(t, 3); tr.Rand.Uint64() != first {
			t.Error("the same seed gave another number")
		}
	})
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]trial.Report{}
	for line := range strings.Lines(string(b)) {
		var r trial.Report
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		last[r.Test] = r
	}
	r := last[t.Name()+"/first"]
	if r.Planned != 100 || r.Cases != 100 || r.Failures != 0 || r.Seed != 7 || len(r.Took) != 100 || len(r.Notes) != 1 {
		t.Errorf("reported %+v", r)
	}
	if p99 := trial.Quantile(r.Took, 0.99); p99 != 99 {
		t.Errorf("p99 of 1 to 100 is %v", p99)
	}
	if r := last[t.Name()+"/second"]; r.Planned != 100 || r.Cases != 0 {
		t.Errorf("reported %+v", r)
	}
}

func TestWithoutBeingAskedATrialIsAsSmallAsItsTestSays(t *testing.T) {
	t.Setenv(trial.CasesEnv, "")
	t.Setenv(trial.ReportEnv, "")
	if tr := trial.Start(t, 3); tr.N != 3 {
		t.Errorf("%d cases", tr.N)
	}
}

func TestAQuantileIsOneOfTheValues(t *testing.T) {
	for q, want := range map[float64]float64{0: 1, 0.5: 2, 0.75: 3, 0.99: 4, 1: 4} {
		if got := trial.Quantile([]float64{3, 1, 4, 2}, q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if got := trial.Quantile(nil, 0.5); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
