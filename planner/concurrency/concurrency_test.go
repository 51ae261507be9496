package concurrency

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// report is one at 100 requests/s of 10 ms each, which need 1.25 cores: a use of 80%.
func report(performance float64, p95 trimtab.Seconds) *trimtab.Estimate {
	cost := 0.01
	band := func(v float64) trimtab.Band { return trimtab.Band{Lower: v, Mean: v, Upper: v} }
	return &trimtab.Estimate{
		Workload: "a", Time: time.Unix(1e9, 0), Performance: &performance, Requests: 1000, Cost: &cost, Latency: map[string]trimtab.Seconds{"p95": p95},
		Model: "test/1", Reports: 9,
		Curve: &trimtab.Curve{Load: 100, Level: 0.9, Knots: []trimtab.Knot{{Allocation: 1, Band: band(0)}, {Allocation: 1.5, Band: band(1)}}},
	}
}

func TestTheLimitIsTheRateThatIsServedInTimeOverTheTimeOfARequest(t *testing.T) {
	var s State
	e := report(0.95, 0.05)
	s.Observe(e, 0.5)
	l, ok := s.For(trimtab.Concurrency, 2, 0, e.Cost)
	if !ok || math.Abs(l.Rate-160) > 1e-9 || l.Amount != 8 { // 2 × 80% / 10ms × 50ms
		t.Errorf("%+v, %v", l, ok)
	}
	for _, want := range []string{"2 cores", "80% use", "10ms", "160 requests/s", "50ms"} {
		if text := l.Words(trimtab.CPU); !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	if more, _ := s.For(trimtab.Concurrency, 4, 0, e.Cost); more.Amount != 2*l.Amount {
		t.Errorf("twice the cores: %+v", more)
	}
}

// In an overload, requests take as long as the limit has them wait for a core.
func TestAnOverloadTeachesNeitherTimeNorNeed(t *testing.T) {
	var s State
	s.Observe(report(0.95, 0.05), 0.5)
	before := s
	late := report(0.01, 3)
	late.Curve.Knots = late.Curve.Knots[:1]
	s.Observe(late, 0.5)
	starved := report(0.95, 3)
	starved.Starved = 4
	s.Observe(starved, 0.5)
	held := report(0.95, 3)
	held.Hold = &trimtab.Held{Code: codes.HeldStale, Text: "x", Input: "load"}
	s.Observe(held, 0.5)
	if s != before {
		t.Errorf("%+v, before %+v", s, before)
	}
}

func TestWhatIsNotKnownGivesNoLimit(t *testing.T) {
	for what, s := range map[string]State{"nothing": {}, "no time": {Need: 0.0125}, "no need": {Time: 0.05}, "more idle than all": {Time: 0.05, Need: 0.0125, Idle: 1000}} {
		if l, ok := s.For(trimtab.Concurrency, 2, 0, nil); ok {
			t.Errorf("%s: %+v", what, l)
		}
	}
	s := State{Time: 0.05, Need: 0.0125}
	for _, a := range []float64{0, -1, math.NaN()} {
		if l, ok := s.For(trimtab.Concurrency, a, 0, nil); ok {
			t.Errorf("of %v: %+v", a, l)
		}
	}
	if l, ok := s.For(trimtab.Concurrency, 2, 0, nil); !ok || l.Amount != 8 || strings.Contains(l.Words(trimtab.CPU), "use") {
		t.Errorf("without a cost: %+v, %v", l, ok)
	}
	cost := 0.02
	if l, _ := s.For(trimtab.Concurrency, 2, 0, &cost); l.Rate != 100 {
		t.Errorf("no more than its cores can do: %+v", l)
	}
	if (&State{Need: math.Inf(1)}).Valid() || (&State{Time: -1}).Valid() || !s.Valid() {
		t.Error("what is valid")
	}
}

func TestANeedThatNoNumberHoldsIsNotLearnt(t *testing.T) {
	var s State
	e := report(0.95, 0.05)
	e.Curve.Load = math.SmallestNonzeroFloat64
	if s.Observe(e, 0.5); !s.Valid() || s.Need != 0 {
		t.Errorf("%+v", s)
	}
}

func TestARateHasThreeDigitsAndALimitIsWhole(t *testing.T) {
	for v, want := range map[float64]float64{0: 0, 0.0123456: 0.013, 1.2341: 1.24, 20: 20, 99.94: 100, 123.4: 124, 12345.6: 12346} {
		if got := Round(trimtab.Rate, v); got != want {
			t.Errorf("rate %v: %v, want %v", v, got, want)
		}
	}
	for v, want := range map[float64]float64{0.2: 1, 7: 7, 7.1: 8} {
		if got := Round(trimtab.Concurrency, v); got != want {
			t.Errorf("limit %v: %v, want %v", v, got, want)
		}
	}
}

func TestTheRateIsWhatTheAllocationServesWhateverARequestTakes(t *testing.T) {
	var s State
	s.Need, s.Idle = 0.0125, 0 // 10 ms at 80%
	if l, ok := s.For(trimtab.Concurrency, 2, 0, nil); ok || l.Allocation != 0 {
		t.Errorf("a limit without a time: %+v", l)
	}
	l, ok := s.For(trimtab.Rate, 2, 0, nil)
	if !ok || l.Amount != 160 || strings.Contains(l.Words(trimtab.CPU), "takes") {
		t.Errorf("%+v: %s", l, l.Words(trimtab.CPU))
	}
	s.Idle = 200
	if l, ok := s.For(trimtab.Rate, 2, 0, nil); ok || l.Allocation != 2 {
		t.Errorf("what serves nothing: %+v", l)
	}
}

// A proxy keeps the limit, so that one with room for the slowest requests would let the service queue.
func TestAProxyHasInServiceWhatKeepsTheServiceBusy(t *testing.T) {
	for _, c := range []struct{ p50, p95, within, want trimtab.Seconds }{
		{0.04, 0.13, 0.2, 0.06},  // half as much again as the median
		{0.01, 0.13, 0.2, 0.025}, // an eighth of the SLO
		{0.01, 0.02, 0.2, 0.02},  // no more than what nearly all take
		{0.04, 0.13, 0, 0.13},    // a gate's rule lowers the limit
		{0, 0.13, 0.2, 0.13},     // the median is not known
	} {
		var s State
		e := report(0.95, c.p95)
		if c.p50 > 0 {
			e.Latency["p50"] = c.p50
		}
		s.Observe(e, 0.5)
		l, ok := s.For(trimtab.Concurrency, 2, c.within, e.Cost)
		if !ok || math.Abs(float64(l.Time-c.want)) > 1e-12 || l.Amount != Round(trimtab.Concurrency, 160*float64(c.want)) {
			t.Errorf("%+v: %+v", c, l)
		}
	}
}

// Requests that wait for their turn before the service take longer the more are sent.
func TestATimeWhileRequestsAreRefusedTeachesNothing(t *testing.T) {
	var s State
	s.Observe(report(0.95, 0.05), 0.5)
	before := s.Time
	e := report(0.95, 0.19)
	e.Refused = map[string]float64{"low": 20}
	if s.Observe(e, 0.5); s.Time != before {
		t.Errorf("%v, before %v", s.Time, before)
	}
	var always State // some are refused all the time, as by a declared rate
	if always.Observe(e, 0.5); always.Time == 0 {
		t.Error("nothing was learnt where some are always refused")
	}
}
