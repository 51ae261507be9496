package analyzer

import (
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/report"
	"github.com/trimtab/trimtab/quantity"
)

// window is what a group tells of one second; what is below 0 is not told.
type window struct{ cores, throttled, waited, queued float64 }

// waited plays a minute of 10 requests a second, and then windows of a workload that has 0.5
// cores and answers so many requests in each.
func waited(t *testing.T, answered int, windows ...window) *trimtab.Estimate {
	t.Helper()
	a := queueAnalyzer(t, FromSpans)
	var e *trimtab.Estimate
	for k := range 60 {
		e = later(e, second(a, k, 0.12, 0, answers(at(k), 10, 0.02)))
	}
	for i, v := range windows {
		k := 60 + i
		for q, x := range map[quantity.Quantity]float64{quantity.Waited: v.waited, quantity.Queued: v.queued} {
			if x >= 0 {
				a.Step(at(k+1), &trimtab.Sample{Workload: "w", Quantity: q, Source: "test", Time: at(k + 1), Window: 1, Value: x})
			}
		}
		e = later(e, second(a, k, v.cores, v.throttled, answers(at(k), answered, 0.02)))
	}
	return e
}

// times is a window, so often.
func times(n int, w window) (all []window) {
	for range n {
		all = append(all, w)
	}
	return all
}

func TestAWorkloadThatUsesAllItHasAndWaitsIsStarvedByWhatTheKernelSees(t *testing.T) {
	for name, c := range map[string]struct {
		of      window
		starves bool
	}{
		"stopped in nearly all periods":                     {window{0.5, 0.95, -1, -1}, true},
		"stopped in half of them":                           {window{0.5, 0.6, -1, -1}, false},
		"and 17 connections wait":                           {window{0.5, 0.6, -1, 17}, true},
		"and a few do, by chance":                           {window{0.5, 0.6, -1, 3}, false},
		"17 connections wait for one thread with a CPU":     {window{0.5, 0, 0.1, 17}, false},
		"17 connections, and its threads wait for a CPU":    {window{0.5, 0, 1, 17}, true},
		"17 connections, and it uses less than it has":      {window{0.3, 0.6, 1, 17}, false},
		"its threads wait for five times as long as it ran": {window{0.5, 0, 2.5, -1}, true},
		"for as long as it ran":                             {window{0.5, 0.3, 0.5, -1}, false},
	} {
		e := waited(t, 10, times(8, c.of)...)
		if e == nil || (e.Starved >= 7) != c.starves || !c.starves && e.Starved != 0 {
			t.Errorf("%s: starved for %v s, want %v", name, e.Starved, c.starves)
		}
	}
	// Each of 100 requests may take 0.2 s: they may all be in time.
	if e := waited(t, 100, times(8, window{0.5, 0.3, 4, -1})...); e == nil || e.Starved != 0 {
		t.Errorf("4 s of waiting are 40 ms for each of 100 requests: starved for %v s", e.Starved)
	}
}

func TestStarvationEndsByEvidenceAndNotByOneWindow(t *testing.T) {
	starves, less, none := window{0.5, 1, -1, -1}, window{0.42, 0.8, -1, -1}, window{0.2, 0, -1, -1}
	kept, untold := window{0.5, 0.3, 2.5, 0}, window{0.5, 0, -1, -1}
	all := func(parts ...[]window) (out []window) {
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	for name, c := range map[string]struct {
		windows    []window
		from, upTo float64
	}{
		"one window below":                {all(times(6, starves), times(1, less)), 6, 6},
		"and it goes on":                  {all(times(6, starves), times(1, less), times(2, starves)), 8, 8},
		"two":                             {all(times(6, starves), times(2, less)), 6, 6},
		"three are an end":                {all(times(6, starves), times(3, less)), 0, 0},
		"one in which it surely does not": {all(times(6, starves), times(1, none)), 0, 0},
		"it begins with three in a row":   {all(times(2, starves), times(1, less), times(2, starves)), 0, 0},

		"what tells of the wait is missing every other time": {all(times(3, kept), times(1, untold), times(1, kept), times(1, untold), times(1, kept), times(1, untold)), 5, 5},
		"it is missing for ten seconds":                      {all(times(6, kept), times(10, untold)), 6, 6},
		"and longer":                                         {all(times(6, kept), times(11, untold)), 0, 0},
		"it is missing, and less than it has is used":        {all(times(6, kept), times(1, window{0.2, 0, -1, -1})), 0, 0},
		"all of it is missing, and less is used":             {all(times(6, kept), times(3, window{0.2, -1, -1, -1})), 0, 0},
		"nobody ever told what waits":                        {all(times(6, window{0.5, 0.95, -1, -1}), times(3, window{0.5, 0.5, -1, -1})), 0, 0},
		"once":                                               {all(times(6, kept), times(1, window{0.2, -1, -1, -1})), 6, 6},
		"it was missing before":                              {all(times(2, kept), times(5, untold), times(1, kept)), 3, 3},
		"it is measured as none":                             {all(times(6, kept), times(1, window{0.5, 0, 0.1, 0})), 0, 0},
	} {
		e := waited(t, 2, c.windows...)
		if e == nil || float64(e.Starved) < c.from || float64(e.Starved) > c.upTo {
			t.Errorf("%s: starved for %v s, want %v", name, e.Starved, c.upTo)
		}
	}
}

func TestWhatSomeInstancesTellIsNoProofThatNothingWaits(t *testing.T) {
	w := queueAnalyzer(t, FromSpans).find("w")
	for k, note := range []string{"", report.Partly} {
		for _, q := range []quantity.Quantity{quantity.Queued, quantity.Usage} { // it comes before the use in its window
			w.queueing.observe(&trimtab.Sample{Quantity: q, Time: at(k), Window: 1, Value: 2, Note: note})
		}
		if u := w.queueing.used[k]; u.queued != 2 || u.reported == 0 || (u.known != 0) != (note == "") {
			t.Errorf("%q: %+v", note, u)
		}
	}
}

func TestWhatWaitsIsSaidInOneSentence(t *testing.T) {
	said := func(e *trimtab.Estimate) string { return strings.Join(append(e.Notes, e.Waits()), "; ") }
	for name, c := range map[string]struct {
		of        []window
		want, not string
	}{
		"connections":                     {times(8, window{0.5, 0.6, 2, 17}), "17 connections wait to be accepted", "threads"},
		"of a workload that has enough":   {times(8, window{0.2, 0.2, 0.1, 17}), "17 connections wait to be accepted", "sees no quota"},
		"one":                             {times(8, window{0.5, 0.6, 2, 1}), "1 connection waits to be accepted", ""},
		"many threads":                    {times(8, window{0.5, 1, 155, 0}), "on average 155 of its threads waited for a CPU", "e+"},
		"threads":                         {times(8, window{0.5, 1, 2.5, 0}), "on average 2.5 of its threads waited for a CPU", ""},
		"others take what it was given":   {times(8, window{0.1, 0, 2.5, 0}), "it gets 0.1 of its 0.5 cores: its threads wait for a CPU, and trimtab sees no quota that stops it", "others"},
		"they do so for a second":         {append(times(8, window{0.1, 0, 0, 0}), window{0.1, 0, 2.5, 0}), "", "sees no quota"},
		"it waited once, and is not near": {append(times(3, window{0.5, 1, 2, 17}), window{0.1, 0, -1, -1}), "", "wait"},
	} {
		if got := said(waited(t, 10, c.of...)); !strings.Contains(got, c.want) || c.not != "" && strings.Contains(got, c.not) {
			t.Errorf("%s: %q, want %q and not %q", name, got, c.want, c.not)
		}
	}
	e := waited(t, 10, times(8, window{0.5, 1, 2.5, 17})...)
	seen := 0
	for _, in := range e.Inputs {
		if in.Name == "queued" && in.Value == 17 || in.Name == "waited" && in.Value == 2.5 {
			seen++
		}
	}
	if seen != 2 {
		t.Errorf("inputs %+v: want both", e.Inputs)
	}
}
