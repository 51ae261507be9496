package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/trimtab/trimtab/lab/memory"
)

// The figures that docs/lab.md promises: less slack than Autopilot and VPA at no more
// overruns.
func TestOnRecordedUsageThereIsLessSlackAtNoMoreOverruns(t *testing.T) {
	dir := os.Getenv("TRIMTAB_DATA")
	if dir == "" {
		t.Skip("TRIMTAB_DATA is not set: no recorded usage to play")
	}
	var out, errs bytes.Buffer
	if code := Main(t.Context(), []string{"sim", "memory", "--data", dir, "-o", "json"}, &out, &errs); code != exitDone {
		t.Fatal(errs.String())
	}
	var got memoryAnswer
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	by := map[string]memory.Score{}
	for _, s := range got.Rules {
		by[s.Rule] = s
	}
	ours := by["trimtab"]
	for rule, most := range map[string]float64{"autopilot": 0.8, "autopilot98": 0.8, "vpa": 0.7} {
		if s := by[rule]; !(ours.Slack <= most*s.Slack) || ours.Overruns > s.Overruns || s.Readings != ours.Readings {
			t.Errorf("%+v, trimtab %+v: want at most %v of the slack", s, ours, most)
		}
	}
}
