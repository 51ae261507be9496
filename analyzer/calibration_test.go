package analyzer

import (
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn/calibrate"
)

func TestBandsAreWiderWhereTheServiceIsNotAsTheyShowed(t *testing.T) {
	a := queueAnalyzer(t, FromSpans)
	w := a.workloads[0]
	var e *trimtab.Estimate
	for k := range 60 {
		e = last(e, []trimtab.Value{second(a, k, 0.2, 0, answers(at(k), 20, 0.05))})
	}
	before := e.Curve.Eval(0.24)
	w.queueing.calibration = calibrate.Calibration{Below: 0.3}
	e = second(a, 60, 0.2, 0, answers(at(60), 20, 0.05))
	if after := e.Curve.Eval(0.24); !(after.Upper-after.Lower > before.Upper-before.Lower+0.05) {
		t.Errorf("%+v, and %+v where it is known to be off", before, after)
	}
}

func TestACostMeasuredWhileRequestsAreGivenUpMayBeHigher(t *testing.T) {
	for _, x := range []struct {
		name      string
		latency   float64
		low, high float64
	}{{"all in time", 0.05, 0.95, 1}, {"all late", 9, 0, 0.1}} {
		a := queueAnalyzer(t, FromSpans)
		var e *trimtab.Estimate
		for k := range 60 {
			e = last(e, []trimtab.Value{second(a, k, 0.2, 0, answers(at(k), 20, x.latency))})
		}
		// 0.2 core-seconds of work come a second.
		if b := e.Curve.Eval(0.38); b.Lower < x.low || b.Lower > x.high {
			t.Errorf("%s: %+v with nearly twice the work that was measured, want a lower bound from %v to %v", x.name, b, x.low, x.high)
		}
	}
}

func TestHowFarCurvesAreOffOutlivesARestart(t *testing.T) {
	a, b := queueAnalyzer(t, FromSpans), queueAnalyzer(t, FromSpans)
	for k := range 3 {
		second(a, k, 0.2, 0, answers(at(k), 20, 0.05))
	}
	q := &a.workloads[0].queueing
	q.calibration, q.doubted = calibrate.Calibration{Above: 0.2, Requests: 7, InTime: 6}, 3
	for name, state := range a.Snapshot() {
		if err := b.Restore(name, state); err != nil {
			t.Fatal(err)
		}
	}
	if got := &b.workloads[0].queueing; got.calibration != q.calibration || got.doubted != q.doubted {
		t.Errorf("%+v, %v doubted", got.calibration, got.doubted)
	}
}
