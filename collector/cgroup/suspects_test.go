package cgroup

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

func TestWhatWaitsIsReadOfGroupsThatMayWaitAlone(t *testing.T) {
	of := func(value float64, missing string) *trimtab.Sample {
		return &trimtab.Sample{Value: value, Missing: missing}
	}
	for name, c := range map[string]struct {
		usage, throttled, allocation *trimtab.Sample
		full, want                   bool
	}{
		"it has enough":                         {of(0.2, ""), of(0.05, ""), of(0.5, ""), false, false},
		"its limit stops it at times":           {of(0.2, ""), of(0.1, ""), of(0.5, ""), false, true},
		"it uses nearly all that it has":        {of(0.45, ""), of(0, ""), of(0.5, ""), false, true},
		"it has no limit":                       {of(3, ""), of(0, "no period elapsed"), of(0, "unlimited"), false, false},
		"it has no limit, and the host is full": {of(3, ""), of(0, "no period elapsed"), of(0, "unlimited"), true, true},
		"it hardly runs, and the host is full":  {of(0.01, ""), of(0, "no period elapsed"), of(0, "unlimited"), true, false},
		"its use is not known":                  {of(0, "first reading"), of(1, ""), of(0.5, ""), true, false},
	} {
		if got := suspects(c.usage, c.throttled, c.allocation, c.full); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestTheIdleTimeOfAllCPUsIsRead(t *testing.T) {
	for text, want := range map[string]time.Duration{"27736.81 18990.45\n": 18990450 * time.Millisecond, "1 0.00": 0, "": -1, "1": -1, "1 x": -1, "1 -2": -1, "1 NaN": -1, "1 1e300": -1} {
		if got := idleOf(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
