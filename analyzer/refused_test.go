package analyzer

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab"
)

// refusing is a sketch of n requests that were answered in time in second k, and of as many more
// that a gate refused.
func refusing(k, n int) *trimtab.Sketch {
	s := answers(at(k), n, 0.02)
	s.Requests, s.Spans, s.Errors = 2*s.Requests, 2*s.Spans, s.Requests
	s.Begun[0] *= 2
	s.Refused = map[string]float64{"low": 0.9 * float64(n), "normal": 0.1 * float64(n)}
	return s
}

func TestWhatAGateRefusesIsDemandAndIsNotInTime(t *testing.T) {
	a := queueAnalyzer(t, FromSpans)
	var e *trimtab.Estimate
	for k := range 40 { // 0.5 cores serve 50 of 100 requests per second
		s := refusing(k, 50)
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		if x := second(a, k, 0.5, 0, s); x != nil {
			e = x
		}
	}
	if e == nil || e.Cost == nil || math.Abs(*e.Cost-0.01) > 1e-9 {
		t.Fatalf("%+v: a request costs 0.01 core-seconds", e)
	}
	if e.Load == nil || math.Abs(e.Load.Now-100) > 1 || e.Performance == nil || math.Abs(*e.Performance-0.5) > 1e-9 {
		t.Errorf("load %+v, %v in time; want 100 requests per second, 0.5", e.Load, e.Performance)
	}
	if d := cmp.Diff(map[string]float64{"low": 45, "normal": 5}, e.Refused); d != "" {
		t.Error(d)
	}
	if err := e.Validate(); err != nil {
		t.Error(err)
	}
	// The work that arrives needs 1 core: what the gate admits must not pass for all of it.
	if e.Curve == nil || e.Curve.Eval(0.6).Mean > 0.8 || e.Curve.Eval(2).Mean < 0.9 {
		t.Errorf("in time with 0.6 cores %+v, with 2 %+v", e.Curve.Eval(0.6), e.Curve.Eval(2))
	}
}
