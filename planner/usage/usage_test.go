package usage_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/usage"
	"github.com/trimtab/trimtab/quantity"
)

var t0 = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// take enters a report of cores at a load, some minutes after t0.
func take(u *usage.Use, minutes int, cores, load, performance float64) {
	now := t0.Add(time.Duration(minutes) * time.Minute)
	u.Observe(now, &trimtab.Estimate{Time: now, Performance: &performance, Load: &trimtab.LoadForecast{Now: load},
		Inputs: []trimtab.Input{{Name: string(quantity.Usage), Value: cores}}})
}

// At most 0.4 cores at 20 requests/s: 0.6 with half as much again, 0.9 for a load of 30.
func TestALimitLeavesHalfAsMuchAgainAtTheLoadToCome(t *testing.T) {
	var u usage.Use
	for k := range 12 {
		take(&u, k, 0.1+0.3*float64(k%2), 10+10*float64(k%2), 0.95)
	}
	day, latest := u.Day(t0.Add(time.Hour)), 0.95
	if day.Reports != 12 || !day.Advises(0.9, &latest) {
		t.Fatalf("%+v", day)
	}
	for load, want := range map[float64]float64{5: 0.6, 20: 0.6, 30: 0.9} {
		if got := day.Limit(load); math.Abs(got-want) > 1e-9 {
			t.Errorf("for %v requests/s a limit of %v, want %v", load, got, want)
		}
	}
}

func TestNoLimitIsAdvisedOnTooLittleOrWhileTheSLOIsMissed(t *testing.T) {
	met, missed := 0.95, 0.5
	for name, c := range map[string]struct {
		reports     int
		performance float64
		latest      *float64
		says        string
	}{
		"too few reports":          {11, 0.95, &met, "after 12 reports of what it uses (11 so far)"},
		"missed on average":        {12, 0.8, &met, "was 0.8 on average for an SLO of 0.9"},
		"missed in the last":       {12, 0.95, &missed, "while it misses its SLO"},
		"the last is not measured": {12, 0.95, nil, "while it misses its SLO"},
	} {
		var u usage.Use
		for k := range c.reports {
			take(&u, k, 0.1, 10, c.performance)
		}
		day := u.Day(t0.Add(time.Hour))
		if day.Advises(0.9, c.latest) || !strings.Contains(day.Awaits(0.9), c.says) {
			t.Errorf("%s: advises %v, %q", name, day.Advises(0.9, c.latest), day.Awaits(0.9))
		}
	}
}

// One report an hour for 30 hours, each with less use: those of more than a day ago are gone.
func TestADayIsRememberedAndAReportCountsOnce(t *testing.T) {
	var u usage.Use
	for h := range 30 {
		take(&u, 60*h, 30-float64(h), 10, 1)
		take(&u, 60*h, 99, 10, 1)
	}
	if day := u.Day(t0.Add(29 * time.Hour)); day.Reports != 24 || day.Cores != 24 {
		t.Errorf("%+v", day)
	}
	if later := u.Day(t0.Add(60 * time.Hour)); later.Reports != 0 {
		t.Errorf("a day later: %+v", later)
	}
}
