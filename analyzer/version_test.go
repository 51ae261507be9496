package analyzer

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
)

// released feeds reports of one allocation, with the version that runs, and
// returns the learner's width there after each.
func released(t *testing.T, a *Analyzer, from int, versions ...string) []float64 {
	t.Helper()
	var widths []float64
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, version := range versions {
		end := start.Add(time.Duration(from+i+1) * time.Second)
		a.Step(end, &trimtab.Holding{Host: "h", Time: end, Targets: []trimtab.KnobState{{KnobID: trimtab.KnobID{Host: "h", Workload: "shop", Resource: "cpu"}, Now: trimtab.Units(2), Since: start.Add(-time.Hour), Max: 8}}})
		s := &trimtab.Sketch{Workload: "shop", From: end.Add(-time.Second), To: end, Requests: 1000, Spans: 1000, Under: 900, Threshold: 0.1}
		for range 1000 {
			s.Latency.Add(0.05, 1)
		}
		if version != "" {
			s.Versions = []string{"shop " + version}
		}
		a.Step(end.Add(10*time.Millisecond), s)
		for _, v := range a.Step(end.Add(900*time.Millisecond), nil) {
			if e, ok := v.(*trimtab.Estimate); ok && e.Curve != nil {
				b := a.workloads[0].curves.learner.Predict(2, 1000)
				widths = append(widths, b.Upper-b.Lower)
			}
		}
	}
	return widths
}

func versioned(t *testing.T) *Analyzer {
	t.Helper()
	a, err := New(Config{Report: time.Second, Round: 10 * time.Second, Workloads: []Workload{{
		Name: "shop", SLO: SLO{Latency: 100 * time.Millisecond, Fraction: 0.95}, Target: 0.95, Resource: "cpu", Min: 0.1, Max: 8,
		Learner: func() learn.Learner { l, _ := gp.New(0.9); return l }}}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func repeated(version string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = version
	}
	return out
}

func TestANewVersionStartsFromTheOldCurveWithAWiderBand(t *testing.T) {
	a := versioned(t)
	before := released(t, a, 0, repeated("1.0", 60)...)
	after := released(t, a, 60, repeated("1.1", 60)...)
	if len(before) == 0 || len(after) < 30 {
		t.Fatalf("%d and %d estimates with a curve", len(before), len(after))
	}
	old, fresh, settled := before[len(before)-1], after[0], after[len(after)-1]
	if fresh < 1.5*old || settled > fresh/1.3 || a.counts.versions != 1 {
		t.Errorf("band %.4f wide before, %.4f at once, %.4f in the end; %d versions counted", old, fresh, settled, a.counts.versions)
	}
}

func TestALearnerInAWrapperLearnsAsItDoesWithout(t *testing.T) {
	bare, wrapped := versioned(t), versioned(t)
	l := wrapped.workloads[0].curves.learner
	wrapped.workloads[0].curves.learner = struct{ learn.Learner }{l}
	for _, a := range []*Analyzer{bare, wrapped} {
		released(t, a, 0, repeated("1.0", 60)...)
		released(t, a, 60, repeated("1.1", 10)...)
	}
	if bare.counts.versions != 1 || !reflect.DeepEqual(bare.Snapshot(), wrapped.Snapshot()) {
		t.Error("the wrapper lost what the learner can do")
	}
}

func TestTheFirstVersionAndReportsWithoutOneChangeNothing(t *testing.T) {
	a, b := versioned(t), versioned(t)
	with := released(t, a, 0, append(repeated("1.0", 30), repeated("", 30)...)...)
	without := released(t, b, 0, repeated("", 60)...)
	if fmt.Sprint(with) != fmt.Sprint(without) || a.counts.versions != 0 {
		t.Errorf("widths differ: %v, %v", with, without)
	}
}

func TestASiteThatNumbersEveryStartStillLearns(t *testing.T) {
	a := versioned(t)
	var all []string
	for i := range 300 {
		all = append(all, fmt.Sprintf("build-%d", i))
	}
	released(t, a, 0, all...)
	// A hundred seconds apart at least, in five minutes of reports.
	if n := a.counts.versions; n < 1 || n > 3 {
		t.Errorf("%d versions believed", n)
	}
	if n := len(a.workloads[0].curves.versions.known); n > maxKnown {
		t.Errorf("%d versions remembered", n)
	}
}

func TestAVersionThatCameWhileTheProcessWasAwayIsNew(t *testing.T) {
	a := versioned(t)
	released(t, a, 0, repeated("1.0", 60)...)
	b := versioned(t)
	for name, state := range a.Snapshot() {
		if err := b.Restore(name, state); err != nil {
			t.Fatal(err)
		}
	}
	released(t, b, 60, repeated("1.1", 3)...)
	if b.counts.versions != 1 {
		t.Errorf("%d versions counted", b.counts.versions)
	}
}
