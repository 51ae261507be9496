package analyzer

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
)

// starving plays a service that answers 10 requests a second for a minute and is then asked more
// than it can do: for some seconds it still answers a few, in time by their spans, since the wait
// in its accept queue is in none, and then nothing any more.
func starving(t *testing.T, few, none int, throttled float64) *trimtab.Estimate {
	t.Helper()
	a := queueAnalyzer(t, FromSpans)
	var e *trimtab.Estimate
	for k := range 60 {
		e = later(e, second(a, k, 0.12, 0, answers(at(k), 10, 0.02)))
	}
	for k := 60; k < 60+few; k++ {
		e = later(e, second(a, k, 0.5, throttled, answers(at(k), 2, 0.02)))
	}
	for k := 60 + few; k < 60+few+none; k++ {
		e = later(e, second(a, k, 0.5, throttled, nil))
	}
	return e
}

func later(before, now *trimtab.Estimate) *trimtab.Estimate {
	if now == nil {
		return before
	}
	return now
}

func TestAnEstimateSaysForHowLongTheWorkloadStarvesWhateverItsSpansTell(t *testing.T) {
	if e := starving(t, 8, 0, 1); e == nil || e.Starved < 7 || e.Hold != nil || *e.Performance != 1 {
		t.Errorf("%+v: want about 8 s, and all that was answered in time", e)
	}
	if e := starving(t, 8, 0, 0.5); e == nil || e.Starved != 0 {
		t.Errorf("%+v: stopped in half of its periods it is busy, and does not starve", e)
	}
	if e := starving(t, 1, 0, 1); e == nil || e.Starved != 0 {
		t.Errorf("%+v: one second is a burst", e)
	}
}

func TestAWorkloadThatStarvesUntilItAnswersNothingMayBeRaisedAndWasNotMeasured(t *testing.T) {
	e := starving(t, 4, 26, 1)
	if e == nil || e.Hold == nil || e.Starved < 20 || e.Performance != nil || e.Fallback != ByStarvation || e.Curve == nil {
		t.Fatalf("%+v: want a hold, no performance, and a curve by which it may be raised", e)
	}
	if need := e.Curve.Least(1, 0.95, func(b trimtab.Band) float64 { return b.Mean }); need < 0.7 || need > 0.8 {
		t.Errorf("it had 0.5 cores for 30 s, and is guessed to need %v, want half as much again", need)
	}
	if !strings.Contains(e.Hold.Text, "it uses all of its 0.5 cores and waits") || e.Load == nil || !(e.Load.Now > 0) {
		t.Errorf("hold %q, load %+v: want why, and the load before", e.Hold.Text, e.Load)
	}
}

// idles plays a service by PromQL that has had no load for so many seconds.
func idles(t *testing.T, seconds int, cores float64, missing bool) *trimtab.Estimate {
	t.Helper()
	a := queueAnalyzer(t, FromPrometheus)
	var e *trimtab.Estimate
	for k := range 60 + seconds {
		now, load := at(k+1), 5.
		if k >= 60 {
			load = 0
			uses(a, now, cores, 0)
		} else {
			uses(a, now, 0.06, 0)
		}
		if k%5 == 4 {
			s := &trimtab.Sample{Workload: "w", Quantity: quantity.Load, Source: "prometheus", Time: now, Window: 5, Value: load}
			if missing && k >= 60 {
				s.Value, s.Missing = 0, "the target is down"
			}
			a.Step(now, s)
			p := &trimtab.Sample{Workload: "w", Quantity: quantity.Performance, Source: "prometheus", Time: now, Window: 5, Value: 1}
			if load == 0 {
				p.Value, p.Missing = 0, "no value"
			}
			a.Step(now, p)
		}
		e = last(e, a.Step(now.Add(600e6), nil))
	}
	return e
}

func TestAMeasuredZeroOfLoadLetsGoWhatAWorkloadWithoutUseHolds(t *testing.T) {
	e := idles(t, 120, 0.001, false)
	if e == nil || e.Hold != nil || e.Curve == nil || e.Fallback != ByIdleness {
		t.Fatalf("%+v: want no hold", e)
	}
	if need := e.Curve.Least(1, 0.95, func(b trimtab.Band) float64 { return b.Mean }); need > 0.03 {
		t.Errorf("without load it needs %v", need)
	}
	for name, e := range map[string]*trimtab.Estimate{
		"it uses CPU":        idles(t, 120, 0.1, false),
		"only just":          idles(t, 30, 0.001, false),
		"its target is down": idles(t, 120, 0.001, true),
	} {
		if e == nil || e.Hold == nil {
			t.Errorf("%s: %+v: want that it is held", name, e)
		}
	}
}

// rests plays pods by PromQL, of whose use nothing is told, that have no load from the first minute on.
// after plays the seconds from 400 on.
func rests(t *testing.T, enough bool, after func(k int, load *trimtab.Sample)) (e *trimtab.Estimate) {
	t.Helper()
	a := queueAnalyzer(t, FromPrometheus)
	if enough {
		a.find("w").spec.RestAfter = 5 * time.Minute
	}
	pods := &trimtab.Holding{Host: "h", Time: at(0), Epoch: 1}
	for _, name := range []string{"1", "2"} {
		pods.Targets = append(pods.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Host: "h", Workload: "w", Instance: name, Resource: trimtab.CPU}, Knob: name, Now: trimtab.Units(0.5), Since: at(0), Min: 0.01, Max: 4})
	}
	a.Step(at(0), pods)
	for k := range 500 {
		now := at(k + 1)
		if k%5 != 4 {
			continue
		}
		load := &trimtab.Sample{Workload: "w", Quantity: quantity.Load, Source: "prometheus", Time: now, Window: 5}
		p := &trimtab.Sample{Workload: "w", Quantity: quantity.Performance, Source: "prometheus", Time: now, Window: 5, Missing: "no value"}
		if k < 60 {
			load.Value = 5
		}
		if k >= 400 && after != nil {
			after(k, load)
		}
		if load.Value > 0 {
			p.Value, p.Missing = 1, ""
		}
		a.Step(now, load)
		a.Step(now, p)
		e = last(e, a.Step(now.Add(600e6), nil))
	}
	return e
}

func TestPodsOfWhoseUseNothingIsToldLetGoAfterAWhileOfMeasuredZeroLoad(t *testing.T) {
	e := rests(t, true, nil)
	if e == nil || e.Hold != nil || e.Curve == nil || e.Fallback != ByIdleness {
		t.Fatalf("%+v: want no hold", e)
	}
	if need := e.Curve.Least(1, 0.95, func(b trimtab.Band) float64 { return b.Mean }); need > 0.05 {
		t.Errorf("without load two pods need %v", need)
	}
	missing := func(k int, s *trimtab.Sample) { s.Value, s.Missing = 0, "the target is down" }
	for name, e := range map[string]*trimtab.Estimate{
		"its minimum is not known to be enough": rests(t, false, nil),
		"its load is missing":                   rests(t, true, missing),
		"its load was missing once": rests(t, true, func(k int, s *trimtab.Sample) {
			if k < 405 {
				missing(k, s)
			}
		}),
	} {
		if e == nil || e.Hold == nil || e.Fallback == ByIdleness {
			t.Errorf("%s: %+v: want that it is held", name, e)
		}
	}
	if e := rests(t, true, func(_ int, s *trimtab.Sample) { s.Value = 5 }); e == nil || e.Fallback != "" || e.Hold != nil || e.Load.Now != 5 {
		t.Errorf("with a load that came back: %+v", e)
	}
}
