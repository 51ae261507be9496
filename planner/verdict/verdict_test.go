package verdict_test

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/verdict"
	"github.com/trimtab/trimtab/quantity"
)

var (
	t0    = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	knob  = trimtab.KnobID{Pool: "p", Host: "h", Workload: "a", Resource: "cpu"}
	rules = verdict.Rules{Unit: 0.1, Round: 10 * time.Second, Urgent: time.Second, Reversals: time.Minute}
)

// report is an estimate at a second: a curve by which every allocation gives 0.95, in a band of
// 0.9 to 1, and so many requests of which a share was in time.
func report(second int, load, performance, requests float64) *trimtab.Estimate {
	band := trimtab.Band{Lower: 0.9, Mean: 0.95, Upper: 1}
	return &trimtab.Estimate{Workload: "a", Time: t0.Add(time.Duration(second) * time.Second), Performance: &performance, Requests: requests,
		Curve: &trimtab.Curve{Load: 10, Level: 0.9, Knots: []trimtab.Knot{{Allocation: 1, Band: band}}},
		Load:  &trimtab.LoadForecast{Now: load, Mean: load, Upper: 1.2 * load}, Inputs: []trimtab.Input{{Name: string(quantity.Performance)}}}
}

// fell has a judge see a fall from 4 to 2 that was written at second 0.
func fell(j *verdict.Judge) {
	a := &trimtab.Action{KnobID: knob, Expect: trimtab.Units(4), Set: trimtab.Units(2), Why: trimtab.Reason{Bounds: &trimtab.Band{}}}
	j.Expect("1-1", a, report(0, 10, 1, 100), 0.9)
	j.Written(t0, "1-1", &trimtab.Result{KnobID: knob, Found: trimtab.Units(2)}, 0.1)
}

// Noise of n requests around a bound q is 2.326 √(max(q(1−q), 0.01)/n): of 100 around 0.9 it is
// 0.070, of 100 around 1 it is 0.023.
func TestAMoveIsJudgedByWhatIsReportedAfterIt(t *testing.T) {
	for _, c := range []struct {
		name        string
		second      int
		load        float64
		performance float64
		requests    float64
		want        codes.Judgement
		taken       bool
	}{
		{"far below the band: at once, and the SLO of 0.9 is broken", 2, 10, 0.6, 100, codes.Worse, true},
		{"just below the band, within the noise: not yet", 2, 10, 0.84, 100, "", false},
		{"just below the band after a round", 12, 10, 0.84, 100, codes.AsExpected, false},
		{"in the band, within a round: not yet", 2, 10, 0.95, 100, "", false},
		{"in the band after a round", 12, 10, 0.95, 100, codes.AsExpected, false},
		{"in the band, too few requests", 12, 10, 0.95, 10, "", false},
		{"in the band, too few requests after six rounds", 61, 10, 0.95, 10, codes.AsExpected, false},
		{"a load beyond its forecast of 12", 12, 13, 0.6, 100, codes.Unjudged, false},
		{"a load below 10·10/12", 12, 8, 0.6, 100, codes.Unjudged, false},
		{"a report of before the move", 0, 10, 0.6, 100, "", false},
	} {
		var j verdict.Judge
		fell(&j)
		v, taken := j.Report(report(c.second, c.load, c.performance, c.requests), 0.9, rules)
		got := codes.Judgement("")
		if v != nil {
			got = v.Verdict
		}
		if got != c.want || taken != c.taken {
			t.Errorf("%s: %q, taken back %v", c.name, got, taken)
		}
		if least, why := j.Floor(); (least == 4) != c.taken || c.taken && !strings.Contains(why, "lowered it to 2, and 60.0% of 100") {
			t.Errorf("%s: at least %v, %q", c.name, least, why)
		}
	}
}

func TestWhatIsTakenBackHoldsForAsLongAsTheGuardHoldsMoves(t *testing.T) {
	var j verdict.Judge
	fell(&j)
	j.Report(report(2, 10, 0.6, 100), 0.9, rules)
	for second, want := range map[int]float64{60: 4, 63: 0} {
		j := j
		if j.Report(report(second, 10, 1, 100), 0.9, rules); least(&j) != want {
			t.Errorf("after %d s at least %v, want %v", second, least(&j), want)
		}
	}
	if j.Report(report(5, 20, 1, 100), 0.9, rules); least(&j) != 0 {
		t.Error("another load, and the move of then is still taken back")
	}
}

func least(j *verdict.Judge) float64 {
	v, _ := j.Floor()
	return v
}

func TestAMoveThatIsMovedAgainIsNotJudged(t *testing.T) {
	var j verdict.Judge
	fell(&j)
	a := &trimtab.Action{KnobID: knob, Expect: trimtab.Units(2), Set: trimtab.Units(3), Why: trimtab.Reason{Bounds: &trimtab.Band{}}}
	j.Expect("1-2", a, report(1, 10, 1, 100), 0.9)
	if v := j.Written(t0, "1-2", &trimtab.Result{KnobID: knob, Found: trimtab.Units(1)}, 0.1); v != nil {
		t.Errorf("not written as asked: %+v", v)
	}
	v := j.Written(t0, "1-2", &trimtab.Result{KnobID: knob, Found: trimtab.Units(3)}, 0.1)
	if v == nil || v.Verdict != codes.Unjudged || v.Plan != "1-1" {
		t.Errorf("%+v", v)
	}
}
