package allocation_test

import (
	"math"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/instances"
	"github.com/trimtab/trimtab/planner/ledger"
	"github.com/trimtab/trimtab/planner/pool"
	"github.com/trimtab/trimtab/quantity"
)

// curve is full at so many cores, under the upper bound of a load of 10 requests per second.
func curve(full float64) *trimtab.Curve {
	return &trimtab.Curve{Load: 20, Level: 0.9, Knots: []trimtab.Knot{{}, {Allocation: full, Band: trimtab.Band{Lower: 1, Mean: 1, Upper: 1}}}}
}

// having is an allocation of a workload with an SLO of 0.9, whose instances have equal parts of the
// load and amounts of their own; it may have 1 to 8 cores in units of 0.1.
func having(amounts ...float64) *allocation.Allocation {
	of := &pool.Resource{Name: trimtab.CPU, Capacity: 8, Unit: 0.1, Step: 10}
	c := allocation.Config{Name: "w", SLO: 0.9, Min: 1, Max: 8, Mode: trimtab.Act, Utility: func(p float64) float64 { return p }}
	w := &allocation.Workload{Config: c, States: allocation.NewStates(&c, []pool.Resource{*of}), Estimate: &trimtab.Estimate{Reports: 10, Curve: curve(4), Load: &trimtab.LoadForecast{Now: 10, Mean: 10, Upper: 20}}}
	s := &allocation.Allocation{Workload: w, State: w.States[0], Resource: of}
	for i, v := range amounts {
		id := trimtab.KnobID{Pool: "p", Host: string(rune('a' + i)), Workload: "w", Resource: trimtab.CPU}
		s.Knobs = append(s.Knobs, instances.Instance{Knob: &ledger.Knob{KnobID: id, Held: trimtab.KnobState{KnobID: id, Now: trimtab.Units(v)}},
			Found: trimtab.Units(v), Has: v, High: 8, Share: 1 / float64(len(amounts))})
	}
	return s
}

func look(s *allocation.Allocation) *allocation.Allocation {
	s.Look(nil, true, "")
	s.Draw(0, true)
	return s
}

func TestThePlannedCurveIsThatOfTheLoadBetweenMeanAndBound(t *testing.T) {
	e := &trimtab.Estimate{Load: &trimtab.LoadForecast{Mean: 10, Upper: 20},
		Curve: &trimtab.Curve{Load: 20, Level: 0.9, Knots: []trimtab.Knot{{Allocation: 4, Band: trimtab.Band{Mean: 0.5}}, {Allocation: 8, Band: trimtab.Band{Mean: 1}}}}}
	planned := func(caution float64) *trimtab.Curve {
		s := having(2)
		s.Estimate = e
		s.Draw(caution, false)
		return s.Curve
	}
	for caution, want := range map[float64]float64{0.25: 5, 0.5: 6, 1: 8, 0: 8} {
		c := planned(caution)
		if got := c.Knots[1].Allocation; math.Abs(got-want) > 1e-12 || math.Abs(c.Load-2.5*want) > 1e-12 {
			t.Errorf("caution %v: full performance at %v under load %v, want at %v", caution, got, c.Load, want)
		}
	}
	if e.Curve.Knots[1].Allocation != 8 {
		t.Error("the estimate was changed")
	}
	e.Load.Upper = 30
	if planned(0.5) != e.Curve {
		t.Error("a curve at another load than the forecast's bound was scaled")
	}
}

func TestTheSlowestInstanceSetsWhatItHasAndSharesByWeightAddUp(t *testing.T) {
	if s := look(having(1, 3)); s.Now != 2 || s.Range.Lo != 20 || s.Range.Hi != 80 {
		t.Errorf("1 and 3 cores: has %v of %d to %d units, want 2 of 20 to 80", s.Now, s.Range.Lo, s.Range.Hi)
	}
	s := having(1, 3)
	for i := range s.Knobs {
		s.Knobs[i].Held.Shared = true
	}
	if look(s); s.Now != 4 {
		t.Errorf("shares of 1 and 3 cores: %v, want 4", s.Now)
	}
}

func TestAnAlertKeepsItFromBeingLowered(t *testing.T) {
	s := having(2)
	now := time.Unix(1e9, 0)
	s.Loan, _ = s.Loan.Note(now, &trimtab.Alert{Name: "slow", Workload: "w", Fingerprint: "f", Firing: true, Time: now}, time.Hour)
	if look(s); !s.Firing() || s.Range.Lo != 20 {
		t.Errorf("fires %v, at least %d units, want 20", s.Firing(), s.Range.Lo)
	}
	if s.Look(nil, false, ""); s.Range.Lo != 10 {
		t.Errorf("without a guard: at least %d units, want its minimum of 10", s.Range.Lo)
	}
}

func TestAFallbackThatStandsInLowersNothing(t *testing.T) {
	s := having(3)
	s.Estimate.Hold, s.Estimate.Fallback = &trimtab.Held{Code: codes.HeldOther, Text: "no spans"}, "declared"
	if look(s); s.Range.Lo != 30 || s.Status.Held.Code != "" {
		t.Errorf("at least %d units, want 30; held %+v", s.Range.Lo, s.Status.Held)
	}
	s = having(8)
	s.Estimate.Hold, s.Estimate.Fallback = &trimtab.Held{Text: "no spans"}, "declared"
	s.Knobs[0].Found = trimtab.Unlimited()
	if look(s); s.Status.Held.Text != "estimate: no spans: it has its maximum" {
		t.Errorf("without a limit: %+v", s.Status.Held)
	}
}

func TestWhoStarvesNeedsNoLessThanItHasAndMisses(t *testing.T) {
	s := having(5)
	s.Estimate.Starved = 3
	look(s)
	if !s.Starves() || !s.Misses() || s.NeedAt(0) < 50 || s.Waiting() != 15 {
		t.Errorf("starves %v, misses %v, needs %d units and %d for what waits, want 50 and 15", s.Starves(), s.Misses(), s.NeedAt(0), s.Waiting())
	}
	s.Knobs[0].Held.Shared = true
	if s.Starves() {
		t.Error("a share by weight starves nobody")
	}
}

func TestOneMissThatRequestsShareIsNoMiss(t *testing.T) {
	s, backlog := look(having(5)), 0.1
	for _, c := range []struct {
		backlog *float64
		missed  int
		want    bool
	}{{&backlog, 1, false}, {&backlog, 2, true}, {nil, 1, true}, {nil, 0, false}} {
		s.Estimate.Backlog, s.Missed = c.backlog, c.missed
		if s.Misses() != c.want {
			t.Errorf("%d reports, backlog %v: misses %v", c.missed, c.backlog != nil, s.Misses())
		}
	}
}

func TestASizeThatIsBarredIsOnlyRecommended(t *testing.T) {
	s := having(2)
	if look(s); !s.Acts() || s.ActionMode() != trimtab.Act {
		t.Errorf("acts %v in mode %s", s.Acts(), s.ActionMode())
	}
	s.Knobs[0].Held.ReadOnly = "the cluster resizes no pods"
	if look(s); s.Acts() || s.ActionMode() != trimtab.Recommend {
		t.Errorf("barred: acts %v in mode %s", s.Acts(), s.ActionMode())
	}
}

func TestWhatReservesRoomGoesBackToWhatTheSiteSetAsFarAsThereIsRoom(t *testing.T) {
	for idle, want := range map[float64]float64{0.5: 2, 1: 3} {
		s := having(2)
		s.Knobs[0].Held.Reserves, s.Knobs[0].Held.Baseline, s.Knobs[0].Set = true, trimtab.Units(3), 2
		if look(s); s.Returns() != 1 {
			t.Errorf("%v more, want 1", s.Returns())
		}
		if s.GoBack(&ledger.Rest{Idle: idle}); s.Knobs[0].Set != want {
			t.Errorf("%v idle: %v cores, want %v", idle, s.Knobs[0].Set, want)
		}
	}
}

// The limit of all is never used up where others on the host use the CPUs that it was promised.
func TestAMemberIsStoppedByALimitOrByOthersOnItsHost(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, x := range map[string]struct {
		throttled, waited float64 // < 0: missing
		age               time.Duration
		stopped, counted  bool
	}{
		"it runs":                             {throttled: 0, waited: -1, counted: true},
		"a limit stops it":                    {throttled: 0.9, waited: -1, stopped: true, counted: true},
		"a limit stops it at times":           {throttled: 0.3, waited: 3, counted: true},
		"others use its CPUs":                 {throttled: 0, waited: 1.5, stopped: true, counted: true},
		"it waits for less time than it runs": {throttled: 0, waited: 0.5, counted: true},
		"nobody counts":                       {throttled: -1, waited: 1.5},
		"too long ago":                        {throttled: 0.9, waited: -1, age: time.Minute},
	} {
		s := having(2)
		s.Estimate.Time, s.Estimate.Cost = now, new(float64)
		for q, v := range map[quantity.Quantity]float64{quantity.Usage: 1, quantity.Throttled: x.throttled, quantity.Waited: x.waited} {
			in := trimtab.Input{Name: string(q), Value: v, Age: trimtab.SecondsOf(x.age)}
			if v < 0 {
				in.Value, in.Missing = 0, "absent"
			}
			s.Estimate.Inputs = append(s.Estimate.Inputs, in)
		}
		if m := look(s).Member(now, 10*time.Second, 2); m.Stopped != x.stopped || (m.Used >= 0) != x.counted {
			t.Errorf("%s: stopped %v, used %v, want %v, counted %v", name, m.Stopped, m.Used, x.stopped, x.counted)
		}
	}
}

// A service that is kept from being asked uses less than its requests want.
func TestAWorkloadWhoseRequestsAreRefusedOrLimitedCountsAsStopped(t *testing.T) {
	at := time.Unix(1e9, 0)
	for name, c := range map[string]struct {
		refused map[string]float64
		partial bool
		used    float64
		want    bool
	}{
		"nothing refused":                {nil, false, 1.9, false},
		"none of a class":                {map[string]float64{"low": 0}, false, 1.9, false},
		"some refused":                   {map[string]float64{"low": 3}, false, 0.1, true},
		"limited, and uses its share":    {nil, true, 1.9, true},
		"limited, and uses little of it": {nil, true, 1, false},
	} {
		s := look(having(2))
		s.Estimate.Time, s.Estimate.Refused = at, c.refused
		for q, v := range map[quantity.Quantity]float64{quantity.Usage: c.used, quantity.Throttled: 0.1} {
			s.Estimate.Inputs = append(s.Estimate.Inputs, trimtab.Input{Name: string(q), Value: v})
		}
		s.Overload.Slice, s.Overload.Partial = 20, c.partial
		if got := s.Member(at, time.Minute, 2).Stopped; got != c.want {
			t.Errorf("%s: stopped %v, want %v", name, got, c.want)
		}
	}
}
