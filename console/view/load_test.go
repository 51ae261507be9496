package view

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// A service was found in spans, had 32.7 requests a second, and went; its estimate is
// told again each round, with the same load.
func TestALoadThatIsOldIsSaidToBeStaleWithItsAge(t *testing.T) {
	v := New(Config{Round: 10 * time.Second})
	tell := func(age time.Duration, hold *trimtab.Held, missing string) Row {
		at := noon.Add(age)
		in := trimtab.Input{Name: "load", Value: 32.7, Age: trimtab.SecondsOf(age), Source: "spans", Missing: missing}
		v.Observe(&trimtab.Estimate{Workload: "gone", Time: at, Hold: hold, Inputs: []trimtab.Input{in},
			Load: &trimtab.LoadForecast{Now: 32.7, Mean: 32.7, Upper: 40, Level: 0.9, Model: "naive"}})
		return v.Status(at).Workloads[0]
	}
	fresh := tell(0, nil, "")
	if fresh.LoadStale || fresh.LoadAge == nil || *fresh.LoadAge != 0 || Load(&fresh) != "32.7" {
		t.Errorf("fresh: %q, %v, %v", Load(&fresh), fresh.LoadStale, fresh.LoadAge)
	}
	gone := tell(time.Hour, &trimtab.Held{Code: codes.HeldStale, Input: "load", Source: "spans", Text: "no load from spans for 1h0m0s"}, "")
	if !gone.LoadStale || *gone.LoadAge != 3600 || Load(&gone) != "32.7 (stale, 60 min old)" {
		t.Errorf("gone: %q, %v, %v", Load(&gone), gone.LoadStale, *gone.LoadAge)
	}
	e, _ := v.Explain("gone", 0, noon.Add(time.Hour))
	if !e.LoadStale || *e.LoadAge != 3600 {
		t.Errorf("explain: %v, %v", e.LoadStale, e.LoadAge)
	}
	if lines, _ := Draft(&gone, DraftKnob{}); !strings.Contains(lines[0], "32.7 requests per second 60 min ago, and none seen since") {
		t.Errorf("draft: %s", lines[0])
	}
	unanswered := tell(2*time.Hour, nil, "the answer is partial: a store is away")
	if !unanswered.LoadStale || *unanswered.LoadAge != 7200 {
		t.Errorf("missing: %v, %v", unanswered.LoadStale, *unanswered.LoadAge)
	}
	if load := v.workloads.all["gone"].report(&trimtab.Estimate{Time: noon, Hold: &trimtab.Held{Input: "load"}, Load: &trimtab.LoadForecast{Now: 1}}).v[colLoad]; !math.IsNaN(float64(load)) {
		t.Errorf("the history has a load of %v at a time without one", load)
	}
}

func TestALoadOfWhichTheAnalyzerSaysNothingIsStale(t *testing.T) {
	v := New(Config{Round: time.Second})
	v.Observe(&trimtab.Estimate{Workload: "w", Time: noon, Load: &trimtab.LoadForecast{Now: 5, Upper: 6, Level: 0.9, Model: "naive"}})
	row := v.Status(noon.Add(time.Minute)).Workloads[0]
	if Load(&row) != "5 (stale, 60 s old)" {
		t.Errorf("%q", Load(&row))
	}
}
