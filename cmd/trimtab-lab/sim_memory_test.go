//go:build integration

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

// The figures that docs/lab.md promises: less slack than Autopilot and VPA at no more than one overrun more
// in 75,000 readings; leaks that are added to recorded usage are
// named ten minutes before their kill, and without them growth is hardly ever named.
func TestOnRecordedUsageThereIsLessSlackAtOneOverrunMoreAtMost(t *testing.T) {
	dir := os.Getenv("TRIMTAB_DATA")
	if dir == "" {
		t.Skip("TRIMTAB_DATA is not set: no recorded usage to play")
	}
	var out, errs bytes.Buffer
	if code := Main(t.Context(), []string{"sim", "memory", "--data", dir, "--leaks", "20", "-o", "json"}, &out, &errs); code != exitDone {
		t.Fatal(errs.String())
	}
	var got memoryAnswer
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	by := map[string]memoryRow{}
	for _, s := range got.Rules {
		by[s.Rule] = s
	}
	ours := by["trimtab"]
	for rule, most := range map[string]float64{"autopilot": 0.8, "autopilot98": 0.8, "vpa": 0.7} {
		if s := by[rule]; !(ours.Slack <= most*s.Slack) || ours.Overruns > s.Overruns+1 || s.Readings != ours.Readings {
			t.Errorf("%+v, trimtab %+v: want at most %v of the slack", s, ours, most)
		}
	}
	if len(got.Sets) != 3 || len(got.Halves) != 2 || got.Sets[1].Series < 20 {
		t.Errorf("sets %+v", got.Sets)
	}
	if got.Added != 20 || got.InTime < 19 || float64(got.False) > got.Quiet/100 {
		t.Errorf("%d of %d leaks named in time; growth named %d times in %.0f days without a leak", got.InTime, got.Added, got.False, got.Quiet)
	}
}
