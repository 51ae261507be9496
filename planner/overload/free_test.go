package overload_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/trimtab/trimtab/planner/overload"
	"github.com/trimtab/trimtab/planner/welfare"
)

// pairOf has a world in which a and b are served in turn and c is not, by reports over 20 s.
func pairOf(t *testing.T) *world {
	t.Helper()
	w := newWorld(welfare.Social{}, 3)
	for i := range w.members {
		w.members[i].Window = 20 * time.Second
	}
	for second := range 8 {
		w.count(.33, true)
		w.second(second, []float64{.4, .4, .42}, none)
	}
	if got := w.ranks(); !slices.Equal(got, []int{1, 2, 0}) {
		t.Fatalf("ranks %v", got)
	}
	return w
}

// of sets what the kernel counts of one member.
func (w *world) of(i int, used float64, stopped bool) {
	w.members[i].Used, w.members[i].Stopped = used, stopped
}

func TestOneThatNothingStopsHasNoQueueWhateverItsReportsTell(t *testing.T) {
	for _, free := range []bool{true, false} {
		w := pairOf(t)
		for second := 8; second < 60; second++ { // reports tell for long that both are late
			w.of(0, .35, !free)
			w.of(1, .35, !free)
			w.of(2, .2, true)
			w.second(second, []float64{.4, .4, .1}, none)
		}
		if got := w.capped(); got[2] == free {
			t.Errorf("free %v: the third has a limit: %v", free, got)
		}
	}
}

func TestWhatOneWantsThatNothingStopsIsWhatItUses(t *testing.T) {
	w := pairOf(t)
	for second := 8; second < 40; second++ {
		w.of(0, .31, false)
		w.of(1, .40, true)
		w.of(2, .1, true)
		w.second(second, []float64{.4, .4, .1}, none)
	}
	if got := w.members[0].State.Wants; math.Abs(got-.31) > .005 {
		t.Errorf("it uses .31 and is taken to want %v", got)
	}
	if got := w.members[1].State.Wants; math.Abs(got-.4) > .005 {
		t.Errorf("of one that is stopped reports tell .4, and it is taken to want %v", got)
	}
}

func TestAnOverloadLastsWhileThoseWhoAreServedAreStoppedAndLate(t *testing.T) {
	w := pairOf(t)
	for second := 8; second < 90; second++ { // few are answered: by reports needs fit
		w.count(.33, true)
		if got := w.second(second, []float64{.1, .1, .1}, none); got != overload.Chosen {
			t.Fatalf("second %d: verdict %d", second, got)
		}
	}
	for second := 90; second < 150; second++ { // the third alone is stopped, at its limit
		w.of(0, .2, false)
		w.of(1, .2, false)
		w.of(2, .2, true)
		if w.second(second, []float64{.1, .1, .1}, []float64{0, 0, 1}) == overload.Fits {
			return
		}
	}
	t.Error("it goes on after needs fit")
}

func TestWhereAllOfThePoolIsUsedAndSeveralMissThatIsAnOverload(t *testing.T) {
	for late, want := range map[int]overload.Verdict{1: overload.Fits, 2: overload.Chosen} {
		w, performances := newWorld(welfare.Social{}, 3), []float64{1, 1, 1}
		for i := range late {
			performances[i] = 0
		}
		var got overload.Verdict
		for second := range 9 { // reports of 20 s tell of little yet
			w.count(.33, true)
			got = w.second(second, []float64{.3, .2, .2}, performances)
		}
		if got != want {
			t.Errorf("%d late: verdict %d, want %d", late, got, want)
		}
	}
}

// A report that began to miss before a workload was free tells of the queue it had; one that
// began later, of a new one.
func TestReportsOfAnOldQueueBeginNoOverload(t *testing.T) {
	for before, want := range map[bool]overload.Verdict{true: overload.Fits, false: overload.Chosen} {
		w := newWorld(welfare.Social{}, 3)
		for i := range w.members {
			w.members[i].Window = 20 * time.Second
		}
		for second := range 10 {
			w.count(.2, false)
			performances := all
			if before {
				performances = none
			}
			w.second(second, []float64{.2, .2, .2}, performances)
		}
		var got overload.Verdict
		for second := 10; second < 18; second++ {
			w.count(.33, true)
			got = w.second(second, []float64{.5, .5, .5}, none)
		}
		if got != want {
			t.Errorf("late before: %v: verdict %d, want %d", before, got, want)
		}
	}
}

// What is wanted is rounded up to units: 173 + 190 + 298 = 661. With one unit less than all want,
// it is who wants most that is not served.
func TestWhereOneUnitIsMissingItIsWhoWantsMostThatIsNotServed(t *testing.T) {
	for _, units := range []int{600, 659, 660, 661} {
		w := newWorld(welfare.Social{}, 3)
		for i, wants := range []float64{.176, .160, .277} {
			w.members[i].State.Wants, w.members[i].State.At, w.members[i].Max = wants, at(0), 660
		}
		_, _, turns := overload.Decide(overload.State{Lasts: true}, overload.Round{Now: at(1), Units: units, Unit: .001, Policy: w.policy, Members: w.members})
		for i, want := range []bool{true, true, units == 661} {
			if got := turns[i].Rank > 0; got != want {
				t.Errorf("%d units: member %d is served: %v", units, i, got)
			}
		}
	}
}

// Where all are served and the last in turn is late, nobody is behind it who could use up what it
// needs: no limit would help it. One with another behind it is helped.
func TestTheLastInTurnIsLateWithoutALimitForAnybody(t *testing.T) {
	for late, limits := range []bool{true, true, false} { // by rank - 1
		w := newWorld(welfare.Social{}, 3)
		for i := range w.members {
			m := &w.members[i]
			m.State.Wants, m.State.At, m.State.Rank, m.State.Slice, m.State.Reports, m.Missed = .3, at(40), i+1, 30, 5, 0
			if m.State.Served = at(40); i == late {
				m.State.Served, m.Missed = at(30), 5
			}
		}
		s := overload.State{Lasts: true, ChoseAt: at(20), AskedAt: at(20)}
		s, _, _ = overload.Decide(s, overload.Round{Now: at(40), Units: 100, Unit: .01, Policy: w.policy, Members: w.members})
		if s.Capping != limits {
			t.Errorf("rank %d is late: limits %v, want %v", late+1, s.Capping, limits)
		}
	}
}

// Both that are served use .2 of the pool and nothing stops them: the third may have what they leave,
// up to 100 - 1.5·(20+20) = 40 units, whatever their reports still tell of a backlog. A share that
// would grow by less than a third stays.
func TestWhatThoseLeaveThatNothingStopsGoesToTheOthers(t *testing.T) {
	w := newWorld(welfare.Social{}, 3)
	for i := range w.members {
		w.members[i].Window = 20 * time.Second
	}
	for second := range 8 { // far more than the pool has: limits at once
		w.count(.33, true)
		w.second(second, []float64{.45, .45, .6}, none)
	}
	for second := 8; second < 40; second++ {
		w.of(0, .2, false)
		w.of(1, .2, false)
		w.of(2, .2, true)
		for i := range 2 {
			w.members[i].State.Observe(overload.Report{Time: at(second), Performance: &none[0], SLO: .9, Costs: .45, Late: .3})
		}
		if second == 8 { // nothing is reported after the backlog
			state, _, turns := overload.Decide(w.state, overload.Round{Now: at(8), Units: 100, Unit: .01, Policy: w.policy, Members: w.members})
			w.state = state
			for i := range turns {
				w.members[i].State = turns[i]
			}
			continue
		}
		w.second(second, []float64{.45, .45, .1}, none)
	}
	if got := w.slices()[2]; !w.capped()[2] || got < 25 || got > 40 {
		t.Errorf("the third has %d units, a limit: %v; want 25 to 40", got, w.capped())
	}
}
