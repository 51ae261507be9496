package overload_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab/planner/overload"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
)

// newLimited is a world whose members have a limit on requests before them. weighs may be nil.
func newLimited(weighs policy.Policy, n int) *world {
	w := newWorld(nil, n)
	if w.weighs = weighs; weighs != nil && weighs.Traits().Sums {
		w.policy = weighs
	}
	for i := range w.members {
		w.members[i].Limited = true
	}
	return w
}

// overloaded has so many seconds pass in which the members want what costs says. Nobody is in time.
func (w *world) overloaded(from, to int, costs ...float64) (last overload.Verdict) {
	for s := from; s < to; s++ {
		last = w.second(s, costs, make([]float64, len(costs)))
	}
	return last
}

func (w *world) partial() (out []bool) {
	for i := range w.members {
		out = append(out, w.members[i].State.Partial)
	}
	return out
}

// Three want 0.2, 0.4 and 0.8 of 1 core, with a reserve 22, 44 and 87 units of 100. A core is worth
// most where it answers the greatest part of a workload's requests.
func TestASumGivesTheCoresToThoseWhereTheyAnswerMostAndTheOthersShed(t *testing.T) {
	w := newLimited(welfare.Social{}, 3)
	if got := w.overloaded(0, 5, .2, .4, .8); got != overload.Admitted {
		t.Fatalf("verdict %v", got)
	}
	if got := w.slices(); !slices.Equal(got, []int{22, 44, 34}) {
		t.Errorf("slices %v", got)
	}
	if got := w.partial(); !slices.Equal(got, []bool{false, false, true}) {
		t.Errorf("served in part: %v", got)
	}
	if got := w.ranks(); !slices.Equal(got, []int{0, 0, 0}) || slices.Contains(w.capped(), true) {
		t.Errorf("ranks %v, caps %v: nobody takes turns or has a limit on CPU", got, w.capped())
	}
}

func TestAnEgalitarianObjectiveAnswersTheSamePartOfEverybodysRequests(t *testing.T) {
	w := newLimited(welfare.Egalitarian{}, 3)
	w.overloaded(0, 5, .2, .4, .8)
	for i, wants := range []float64{.2, .4, .8} { // 1 core of 1.4 that are wanted
		if got := float64(w.members[i].State.Slice) / 100 / wants; math.Abs(got-1/1.4) > .05 {
			t.Errorf("member %d has %v of what it wants", i, got)
		}
	}
	if got := w.partial(); !slices.Equal(got, []bool{true, true, true}) {
		t.Errorf("served in part: %v", got)
	}
}

func TestAnObjectiveAboutEntitlementsShedsOnlyBeyondThem(t *testing.T) {
	w := newLimited(nil, 3)
	if got := w.overloaded(0, 5, .2, .4, .8); got != overload.Admitted {
		t.Fatalf("verdict %v", got)
	}
	// A third each; the first wants less, and the others share what it leaves.
	if got := w.slices(); got[0] != 22 || got[1] < 38 || got[2] < 38 || got[0]+got[1]+got[2] != 100 {
		t.Errorf("slices %v", got)
	}
	if got := w.partial(); !slices.Equal(got, []bool{false, true, true}) {
		t.Errorf("served in part: %v", got)
	}
}

func TestAMemberWithoutALimitHasAllThatItWantsUpToItsEntitlement(t *testing.T) {
	w := newLimited(welfare.Social{}, 3)
	w.members[1].Limited = false
	if got := w.overloaded(0, 5, .2, .3, .8); got != overload.Admitted || w.slices()[1] != 33 || w.partial()[1] {
		t.Fatalf("verdict %v, slices %v", got, w.slices())
	}
	// Beyond that its queue would grow whatever the others refuse: they are served in turn.
	if got := w.overloaded(5, 40, .2, .6, .8); got != overload.Chosen || slices.Max(w.ranks()) == 0 || slices.Contains(w.partial(), true) {
		t.Errorf("verdict %v, ranks %v, in part %v", got, w.ranks(), w.partial())
	}
}

func TestNobodyChangesPlacesOverNoise(t *testing.T) {
	w := newLimited(welfare.Social{}, 2)
	w.overloaded(0, 400, .8, .81) // the second has a part of its share taken away at a time
	before := w.slices()
	for s := 400; s < 700; s++ {
		costs := []float64{.8, .81}
		if s/70%2 == 0 {
			costs = []float64{.83, .8}
		}
		if w.overloaded(s, s+1, costs...); !slices.Equal(w.slices(), before) {
			t.Fatalf("second %d: %v, before %v", s, w.slices(), before)
		}
	}
}

// refused has a second pass in which nobody is in time, the parts of the last member's requests that are
// given are refused, and those of its most important class among them.
func (w *world) refused(s int, of, important float64, costs ...float64) {
	last := len(costs) - 1
	w.members[last].State.Observe(overload.Report{Time: at(s), SLO: .9, Costs: costs[last], Refused: of, Important: important})
	w.overloaded(s, s+1, costs...)
}

func TestTheOneThatPaysKeepsWhatItsMostImportantRequestsNeed(t *testing.T) {
	w := newLimited(welfare.Social{}, 2)
	share := func() int { return w.members[1].State.Slice }
	w.overloaded(0, 10, .8, .85)
	if got := share(); got != 50 {
		t.Fatalf("%d units at first, want its entitlement", got)
	}
	s := 10
	for ; share() > 15; s++ {
		before := share()
		if w.refused(s, .8, .001, .8, .85); s > 100 || share() < before*7/10 {
			t.Fatalf("second %d: nothing important is refused, and its share goes from %d to %d", s, before, share())
		}
	}
	for end := s + 30; s < end; s++ { // a fifth is answered, and a twentieth would be important
		w.refused(s, .8, .05, .8, .85)
	}
	kept := w.members[1].State.Kept
	if want := int(kept * 92); kept < .24 || kept > .4 || share() < want-6 || share() > want+1 { // a change of 5 units is worth none
		t.Fatalf("keeps %v of its requests with %d units, want at least a fifth and a twentieth", kept, share())
	}
	for ; s < 300; s++ {
		w.refused(s, .75, 0, .8, .85)
		if got := w.members[1].State.Kept; math.Abs(got-kept) > .01*kept {
			t.Fatalf("second %d: keeps %v, before %v", s, got, kept)
		}
	}
	w.members[1].State.End()
	if x := w.members[1].State; x.Kept != 0 || x.Sure {
		t.Errorf("after the overload %+v", x)
	}
}

func TestWhereAShareAnswersLessThanItsDemandLetsExpectItGrowsUntilImportantRequestsAreAnswered(t *testing.T) {
	w := newLimited(welfare.Social{}, 3)
	share := func() int { return w.members[2].State.Slice }
	w.overloaded(0, 10, .66, .66, .66)
	if got := share(); got < 32 || got > 35 {
		t.Fatalf("%d units at first, want its entitlement", got)
	}
	for s := 10; s < 50; s++ { // 45% would be answered, and are 30%; with less than 40 units, important ones are refused
		important := 0.
		if share() < 40 {
			important = .05
		}
		w.refused(s, .7, important, .66, .66, .66)
	}
	if got := share(); got < 40 {
		t.Errorf("slices %v", w.slices())
	}
}

func TestWhatAllKeepIsNoMoreThanThePool(t *testing.T) {
	w := newLimited(welfare.Social{}, 3)
	w.overloaded(0, 5, .6, .7, .8)
	for s := 5; s < 60; s++ {
		for i := range w.members {
			w.members[i].State.Observe(overload.Report{Time: at(s), SLO: .9, Costs: []float64{.6, .7, .8}[i], Refused: .3, Important: .3})
		}
		w.overloaded(s, s+1, .6, .7, .8)
		if got := w.slices(); got[0]+got[1]+got[2] > 100 || slices.Min(got) < 25 {
			t.Fatalf("second %d: %v of 100 units", s, got)
		}
	}
}

// With the kernel's counts nobody is served beyond what it gets, while a gate refuses requests.
func TestAnOverloadLastsWhileRequestsAreRefusedAndEndsWhenTheyFit(t *testing.T) {
	w := newLimited(welfare.Egalitarian{}, 2)
	w.count(.49, true)
	if got := w.overloaded(0, 20, .8, .8); got != overload.Admitted {
		t.Fatalf("verdict %v", got)
	}
	w.count(.2, false)
	last := overload.Admitted
	for s := 20; s < 40; s++ {
		last = w.second(s, []float64{.2, .2}, all)
	}
	if last != overload.Fits || !slices.Equal(w.slices(), []int{0, 0}) || slices.Contains(w.partial(), true) {
		t.Errorf("verdict %v, slices %v, in part %v", last, w.slices(), w.partial())
	}
}

func TestWhateverIsWantedAdmissionDividesNoMoreThanThePool(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(rt, "members")
		w := newLimited(rapid.SampledFrom([]policy.Policy{nil, welfare.Social{}, welfare.Egalitarian{}}).Draw(rt, "objective"), n)
		for i := range w.members {
			m := &w.members[i]
			m.Limited = rapid.IntRange(0, 5).Draw(rt, "limited") > 0
			m.Min, m.Guarantee = rapid.IntRange(0, 100/n).Draw(rt, "min"), rapid.IntRange(0, 100/n).Draw(rt, "guarantee")
		}
		for s := 0; s < 200; s += rapid.IntRange(1, 30).Draw(rt, "seconds") {
			costs := make([]float64, n)
			for i := range costs {
				costs[i] = rapid.Float64Range(0, 2).Draw(rt, "cost")
			}
			if w.overloaded(s, s+1, costs...) != overload.Admitted {
				continue
			}
			sum := 0
			for i, slice := range w.slices() {
				m := &w.members[i]
				if sum += slice; slice < max(m.Min, 1) || !m.State.Valid() || m.State.Partial && !m.Limited {
					rt.Fatalf("second %d: %+v", s, m)
				}
			}
			if sum > 100 {
				rt.Fatalf("second %d: %v of 100 units", s, w.slices())
			}
		}
	})
}
