package overload_test

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/overload"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
)

var t0 = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return t0.Add(time.Duration(seconds) * time.Second) }

// world is a pool of one core in units of 0.01 cores, shared by members whose requests cost what
// costs says, in cores.
type world struct {
	state   overload.State
	members []overload.Member
	policy  policy.Policy
	weighs  policy.Policy
}

// newWorld has members a, b, c, … each entitled to an equal part.
func newWorld(p policy.Policy, n int) *world {
	w := &world{policy: p}
	for i := range n {
		w.members = append(w.members, overload.Member{
			Workload: policy.Workload{Name: string(rune('a' + i)), Weight: 1, Max: 100, SLO: 0.9, Utility: policy.Linear(0.9),
				Curve: &trimtab.Curve{Load: 10, Level: 0.9}},
			Entitled: 1 / float64(n), Missed: 1, Cost: 0.01, Used: -1,
		})
	}
	return w
}

// second has one second pass in which each member reports a cost and a performance.
func (w *world) second(t int, costs, performances []float64) overload.Verdict {
	for i := range w.members {
		m := &w.members[i]
		m.State.Observe(overload.Report{Time: at(t), Performance: &performances[i], SLO: 0.9, Costs: costs[i]})
		if m.Missed++; performances[i] >= 0.9 {
			m.Missed = 0
		}
	}
	state, verdict, turns := overload.Decide(w.state, overload.Round{Now: at(t), Units: 100, Unit: 0.01, Policy: w.policy, Weighs: w.weighs, Members: w.members})
	w.state = state
	for i := range turns {
		w.members[i].State = turns[i]
	}
	return verdict
}

func (w *world) slices() (out []int) {
	for i := range w.members {
		out = append(out, w.members[i].State.Slice)
	}
	return out
}

func (w *world) ranks() (out []int) {
	for i := range w.members {
		out = append(out, w.members[i].State.Rank)
	}
	return out
}

func (w *world) capped() (out []bool) {
	for i := range w.members {
		out = append(out, w.members[i].State.Capped)
	}
	return out
}

var none, all = []float64{0, 0, 0}, []float64{1, 1, 1}

func TestWhileNeedsFitNothingIsDecided(t *testing.T) {
	w := newWorld(welfare.Social{}, 3)
	for s := range 60 { // 0.9 of 1 core, and nobody is in time
		if got := w.second(s, []float64{0.3, 0.3, 0.3}, none); got != overload.Fits {
			t.Fatalf("second %d: %v", s, got)
		}
	}
	if !reflect.DeepEqual(w.state, overload.State{}) || !reflect.DeepEqual(w.slices(), []int{0, 0, 0}) {
		t.Errorf("%+v, slices %v", w.state, w.slices())
	}
}

// Three that want 0.4 of 1 core each: two fit, with 0.80/0.93 = 0.86. The crumb of each is 1% of
// 1/3, which is less than a unit: 1. Of the 97 that are left the first has 9/10, 87, the second
// the rest, 10.
func TestOfThreeThatDoNotFitTwoAreServedInTurnAndTheThirdHasACrumb(t *testing.T) {
	w := newWorld(welfare.Social{}, 3)
	want := []overload.Verdict{overload.Fits, overload.Fits, overload.Chosen}
	for s, v := range want { // needs must not fit for 2 s
		if got := w.second(s, []float64{0.4, 0.4, 0.4}, none); got != v {
			t.Fatalf("second %d: %v, want %v", s, got, v)
		}
	}
	if got := w.slices(); !slices.Equal(got, []int{88, 11, 1}) {
		t.Errorf("slices %v", got)
	}
	if got := w.ranks(); !slices.Equal(got, []int{1, 2, 0}) {
		t.Errorf("ranks %v", got)
	}
	if held := w.members[2].State.Held; math.Abs(held-0.4) > 1e-9 {
		t.Errorf("the third is taken to want %v, not what it wanted when it was given up", held)
	}
}

// A restart keeps the turns and not the state: the overload goes on, without 2 s to be seen again.
func TestAnOverloadOutlivesARestart(t *testing.T) {
	w := newWorld(welfare.Social{}, 3)
	for s := range 3 {
		w.second(s, []float64{0.4, 0.4, 0.4}, none)
	}
	w.state = overload.State{}
	if got := w.second(3, []float64{0.4, 0.4, 0.4}, none); got != overload.Chosen || !w.state.Lasts {
		t.Errorf("%v, %+v", got, w.state)
	}
}

func TestAnObjectiveAboutEntitlementsChoosesNobody(t *testing.T) {
	w := newWorld(nil, 3)
	for s := range 10 {
		w.second(s, []float64{0.4, 0.4, 0.4}, none)
	}
	if got := w.second(10, []float64{0.4, 0.4, 0.4}, none); got != overload.Shared || w.ranks()[0] != 0 {
		t.Errorf("%v, ranks %v", got, w.ranks())
	}
}

func TestWhatIsNotMissedOrNotKnownIsNoOverload(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"nobody misses": func(w *world) {
			for s := range 10 {
				w.second(s, []float64{0.4, 0.4, 0.4}, all)
			}
		},
		"of one nobody knows what would be enough": func(w *world) {
			w.members[1].Unknown = true
			for s := range 10 {
				w.second(s, []float64{0.4, 0.4, 0.4}, none)
			}
		},
		"it lasts less than 2 s": func(w *world) {
			w.second(0, []float64{0.4, 0.4, 0.4}, none)
			w.second(1, []float64{0.2, 0.2, 0.2}, none)
			w.second(2, []float64{0.4, 0.4, 0.4}, none)
		},
	} {
		w := newWorld(welfare.Social{}, 3)
		if change(w); w.state.Lasts {
			t.Errorf("%s: %+v", name, w.state)
		}
	}
}

// The dwell is a minute, and who is served may want up to 1.1 of the pool: 0.5 and 0.5 stay.
func TestWhoIsServedStaysServedWhileThePoolCanServeIt(t *testing.T) {
	w := newWorld(welfare.Social{}, 3)
	served := []float64{1, 1, 0}
	for s := range 3 {
		w.second(s, []float64{0.4, 0.4, 0.4}, none)
	}
	for s := 3; s < 200; s++ {
		w.second(s, []float64{0.5, 0.5, 0.2}, served)
	}
	if got := w.ranks(); !slices.Equal(got, []int{1, 2, 0}) {
		t.Errorf("ranks %v", got)
	}
}

// It ends where all want less than 0.93 of the pool: nothing of it is left.
func TestAfterTheOverloadNothingOfItIsLeft(t *testing.T) {
	w := newWorld(welfare.Social{}, 3)
	for s := range 3 {
		w.second(s, []float64{0.4, 0.4, 0.4}, none)
	}
	last := overload.Chosen
	for s := 3; s < 120; s++ { // what was wanted is forgotten over 20 s
		last = w.second(s, []float64{0.2, 0.2, 0.2}, all)
	}
	if last != overload.Fits || !reflect.DeepEqual(w.state, overload.State{}) || !slices.Equal(w.slices(), []int{0, 0, 0}) {
		t.Errorf("%v, %+v, slices %v", last, w.state, w.slices())
	}
}

// 10 s after the choice those who are served are late: the others get a limit, a crumb, and the second
// in turn, too, until the first is in time. Once both are, the third has what they leave,
// 100 - 1.5·(30+30) = 10 units.
func TestWhereSharesDoNotServeInTimeTheOthersGetALimit(t *testing.T) {
	w := newWorld(welfare.Social{}, 3)
	w.members[2].Cost = 0.05
	wants := []float64{0.3, 0.3, 0.68}
	for s := range 13 {
		if w.second(s, wants, none); s < 12 && (w.state.Capping || w.members[2].State.Capped) {
			t.Fatalf("second %d: capped before its time", s)
		}
	}
	if got := w.slices(); !slices.Equal(got, []int{88, 1, 1}) || !slices.Equal(w.capped(), []bool{false, true, true}) {
		t.Errorf("%v, capped %v", got, w.capped())
	}
	w.second(13, wants, []float64{1, 0, 0})
	if got := w.slices(); !slices.Equal(got, []int{88, 11, 1}) || !slices.Equal(w.capped(), []bool{false, false, true}) {
		t.Errorf("once the first is in time: %v, capped %v", got, w.capped())
	}
	w.second(14, wants, []float64{1, 1, 0})
	if got := w.slices(); got[2] != 10 || !slices.Equal(w.capped(), []bool{false, false, true}) {
		t.Errorf("with both in time: %v, capped %v", got, w.capped())
	}
	w.second(15, wants, []float64{1, 0, 0})
	w.second(16, wants, []float64{1, 0, 0})
	if got := w.slices(); got[2] != 1 || !slices.Equal(w.capped(), []bool{false, false, true}) {
		t.Errorf("with one late again: %v, capped %v", got, w.capped())
	}
}

// What is guessed to arrive beside what is answered tells that there is an overload, and is
// counts as wanted by nobody: an error of half would keep a second from being served.
func TestWhatIsGuessedToArriveMakesAnOverloadAndCountsForNobody(t *testing.T) {
	w := newWorld(welfare.Social{}, 3)
	miss := 0.
	for s := range 3 {
		for i := range w.members {
			w.members[i].State.Observe(overload.Report{Time: at(s), Performance: &miss, SLO: 0.9, Costs: []float64{0.44, 0.44, 0.1}[i], Hidden: 0.5})
			w.members[i].Missed++
		}
		var turns []overload.WorkloadState
		w.state, _, turns = overload.Decide(w.state, overload.Round{Now: at(s), Units: 100, Unit: 0.01, Policy: w.policy, Members: w.members})
		for i := range turns {
			w.members[i].State = turns[i]
		}
	}
	if got := w.members[0].State.Wants; !w.state.Lasts || math.Abs(got-0.44) > 1e-9 {
		t.Errorf("it wants %v, %+v", got, w.state)
	}
}

// 1.35 of the pool: no trial is needed for what shares alone cannot do.
func TestFarBeyondThePoolTheOthersHaveALimitAtOnce(t *testing.T) {
	w := newWorld(welfare.Social{}, 3)
	for s := range 3 {
		w.second(s, []float64{0.45, 0.45, 0.45}, none)
	}
	if got := w.slices(); !slices.Equal(got, []int{88, 1, 1}) || !slices.Equal(w.capped(), []bool{false, true, true}) {
		t.Errorf("%v, capped %v", got, w.capped())
	}
}

// Two of 0.46 fit, by reports that are too low. 15 s after the first is in time it is
// known to want 0.65: with the second that is more than the pool, and the second makes room.
func TestOnceTheFirstIsInTimeTheObjectiveIsAskedAgain(t *testing.T) {
	w := newWorld(welfare.Social{}, 3)
	for s := range 3 {
		w.second(s, []float64{0.46, 0.46, 0.46}, none)
	}
	if got := w.ranks(); !slices.Equal(got, []int{1, 2, 0}) {
		t.Fatalf("ranks %v", got)
	}
	for s := 3; s < 19; s++ {
		if w.second(s, []float64{0.65, 0.4, 0.4}, []float64{1, 0, 0}); s < 18 && !slices.Equal(w.ranks(), []int{1, 2, 0}) {
			t.Fatalf("second %d: ranks %v", s, w.ranks())
		}
	}
	if got := w.ranks(); !slices.Equal(got, []int{1, 0, 0}) {
		t.Errorf("ranks %v", got)
	}
}

// The first wants more than its two rivals, who fit together as it does with either of them. It is
// in time: it stays.
func TestWhoIsServedAndInTimeIsNotGivenUpForOneThatWantsLess(t *testing.T) {
	w := newWorld(welfare.Social{}, 3)
	for s := range 3 {
		w.second(s, []float64{0.4, 0.4, 0.4}, none)
	}
	for s := 3; s < 60; s++ {
		w.second(s, []float64{0.5, 0.2, 0.2}, []float64{1, 0, 0})
	}
	if got := w.ranks(); got[0] != 1 {
		t.Errorf("ranks %v", got)
	}
}

// While one that is served works off its queue, what it answers says nothing of what arrives.
func TestWhatIsAnsweredOfAQueueIsNotWanted(t *testing.T) {
	turn := overload.WorkloadState{Wants: 0.3, At: at(0), Rank: 1, Slice: 70}
	miss, meet := 0., 1.
	for s := 1; s < 20; s++ {
		turn.Observe(overload.Report{Time: at(s), Costs: 0.6, Performance: &miss, SLO: 0.9})
	}
	if math.Abs(turn.Wants-0.3) > 1e-9 {
		t.Errorf("late: it wants %v", turn.Wants)
	}
	for s := 20; s < 60; s++ {
		turn.Observe(overload.Report{Time: at(s), Costs: 0.6, Performance: &meet, SLO: 0.9})
	}
	if turn.Wants < 0.55 || !turn.InTime.Equal(at(20)) {
		t.Errorf("in time since %v it wants %v", turn.InTime, turn.Wants)
	}
}

// A minute after the choice the first cannot use its share with limits either, while the second is in
// time: the first is barred, and the others are served in its place.
func TestWhoCannotUseItsTurnIsBarredAndAnotherIsServed(t *testing.T) {
	w := newWorld(welfare.Social{}, 3)
	for s := range 64 {
		w.second(s, []float64{0.4, 0.4, 0.4}, []float64{0, 1, 0})
	}
	if got := w.ranks(); !slices.Equal(got, []int{0, 1, 2}) || !w.members[0].State.ExcludedUntil.After(at(64)) {
		t.Errorf("ranks %v, barred until %v", got, w.members[0].State.ExcludedUntil)
	}
}

// Two that were to be served are late: there is no room for both, and none for the third, which
// wants as much. The first is served alone.
func TestWhereBothAreLateTheFirstIsServedAlone(t *testing.T) {
	w := newWorld(welfare.Social{}, 3)
	for s := range 70 {
		w.second(s, []float64{0.46, 0.46, 0.46}, none)
	}
	if got := w.ranks(); !slices.Equal(got, []int{1, 0, 0}) {
		t.Errorf("ranks %v", got)
	}
}

// The first in turn can be missing from a round: nothing is known of it, or it is gone.
// Reports cover 5 s. The objective is asked again after a minute, and chooses the same: that is no
// new choice, after which the second would have its two minutes once more.
func TestAChoiceThatIsConfirmedGivesNobodyMoreTimeToShowThatItCanBeServed(t *testing.T) {
	w := newWorld(welfare.Social{}, 3)
	for i := range w.members {
		w.members[i].Window = 5 * time.Second
	}
	first := 0.
	for s := range 200 {
		w.second(s, []float64{0.4, 0.4, 0.4}, []float64{first, 0, 0})
		if first = 0; s%3 > 0 { // it is late now and then
			first = 1
		}
	}
	if got := w.ranks(); !slices.Equal(got, []int{1, 0, 0}) {
		t.Errorf("ranks %v after 200 s in which the second was never in time", got)
	}
}

func TestARoundWithoutTheFirstInTurnGoesOn(t *testing.T) {
	w := newWorld(welfare.Social{}, 3)
	for s := range 3 {
		w.second(s, []float64{0.4, 0.4, 0.4}, none)
	}
	w.members = w.members[1:]
	for s := 3; s < 60; s++ {
		w.second(s, []float64{0.6, 0.6}, none[:2])
	}
	for s := 60; s < 900; s++ {
		w.second(s, []float64{0.6, 0.6}, []float64{1, 0})
	}
	if got := w.ranks(); !slices.Equal(got, []int{1, 0}) {
		t.Errorf("ranks %v", got)
	}
}

// Of equally many that could be served those are whose requests are short, and who is served
// already stays.
func TestOfTiesShortRequestsAreServed(t *testing.T) {
	w := newWorld(welfare.Social{}, 3)
	w.members[0].Cost = 0.05
	for s := range 3 {
		w.second(s, []float64{0.4, 0.4, 0.4}, none)
	}
	if got := w.ranks(); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("ranks %v", got)
	}
	w.members[0].Cost, w.members[2].Cost = 0.01, 0.05
	for s := 3; s < 100; s++ {
		w.second(s, []float64{0.4, 0.4, 0.4}, []float64{0, 1, 1})
	}
	if got := w.ranks(); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("a minute later: ranks %v", got)
	}
}

// Needs must fit for 8 s: with 0.2 and 0.2 beside 0.4 that is given up they do, and an overload
// that is wanted again within that time did not end.
func TestAnOverloadEndsOnceNeedsFitForSomeTime(t *testing.T) {
	w := newWorld(welfare.Social{}, 3)
	for s := range 3 {
		w.second(s, []float64{0.4, 0.4, 0.4}, none)
	}
	fits, over := []float64{0.2, 0.2, 0.4}, []float64{0.6, 0.6, 0.4}
	for s := 3; s < 100; s++ {
		costs := over
		if s%10 < 5 {
			costs = fits
		}
		if got := w.second(s, costs, []float64{1, 1, 0}); got != overload.Chosen {
			t.Fatalf("second %d: %v", s, got)
		}
	}
	ended := 0
	for s := 100; s < 130 && ended == 0; s++ {
		if w.second(s, fits, []float64{1, 1, 0}) == overload.Fits {
			ended = s
		}
	}
	if ended < 108 || ended > 115 {
		t.Errorf("it ended at second %d", ended)
	}
}

// Reports that cover 20 s tell of the time before a choice until then.
func TestReportsThatCoverTheTimeBeforeAChoiceSayNothingOfIt(t *testing.T) {
	w := newWorld(welfare.Social{}, 3)
	for i := range w.members {
		w.members[i].Window = 20 * time.Second
	}
	for s := range 26 { // needs must not fit for 5 s
		if w.second(s, []float64{0.39, 0.39, 0.39}, none); w.state.Capping != (s == 25) {
			t.Fatalf("second %d: capping %v", s, w.state.Capping)
		}
	}
}

// One alone wants more than all: nobody can be served, and each has its entitlement, 50 units.
func TestWhereNobodyCanBeServedAllHaveTheirEntitlement(t *testing.T) {
	w := newWorld(welfare.Social{}, 2)
	for s := range 5 {
		w.second(s, []float64{2, 2}, none)
	}
	if got := w.slices(); !slices.Equal(got, []int{50, 50}) {
		t.Errorf("slices %v", got)
	}
}

// Guarantees and minimums hold for who is not served.
func TestWhoIsNotServedKeepsItsGuaranteeAndItsMinimum(t *testing.T) {
	w := newWorld(welfare.Social{}, 3)
	w.members[1].Guarantee, w.members[2].Min = 5, 7
	for s := range 3 {
		w.second(s, []float64{0.8, 0.9, 0.9}, none)
	}
	if got := w.slices(); !slices.Equal(got, []int{88, 5, 7}) {
		t.Errorf("slices %v", got)
	}
}

func TestARoundChangesNeitherItsMembersNorTheStateBefore(t *testing.T) {
	w := newWorld(welfare.Social{}, 3)
	for s := range 2 {
		w.second(s, []float64{0.4, 0.4, 0.4}, none)
	}
	before, state := slices.Clone(w.members), w.state
	round := overload.Round{Now: at(2), Units: 100, Unit: 0.01, Policy: w.policy, Members: w.members}
	_, one, turns := overload.Decide(w.state, round)
	_, two, again := overload.Decide(w.state, round)
	if one != two || !reflect.DeepEqual(turns, again) {
		t.Errorf("the same round twice: %v %+v, then %v %+v", one, turns, two, again)
	}
	for i := range before {
		if !reflect.DeepEqual(before[i].State, w.members[i].State) || w.state != state {
			t.Errorf("member %d became %+v", i, w.members[i].State)
		}
	}
}

// 0.4 cores of requests that were answered, and half as many again that wait unseen: 0.6 now.
// 20 s of another cost are 1 - 1/e of the average.
func TestWhatIsWantedIsAveragedAndWhatIsHiddenCounts(t *testing.T) {
	var turn overload.WorkloadState
	turn.Observe(overload.Report{Time: at(0), Costs: 0.4, Hidden: 0.5})
	if turn.Wants != 0.4 {
		t.Errorf("the first report: %v", turn.Wants)
	}
	turn.Observe(overload.Report{Time: at(20), Costs: 0.8})
	if want := 0.4/math.E + 0.8*(1-1/math.E); math.Abs(turn.Wants-want) > 1e-9 {
		t.Errorf("wants %v, want %v", turn.Wants, want)
	}
	turn.Observe(overload.Report{Time: at(21), Costs: math.NaN()})
	turn.Observe(overload.Report{Time: at(22), Costs: -1})
	if !turn.At.Equal(at(20)) {
		t.Error("a report without a cost counted")
	}
}

func TestATurnOutlivesARestartAndAWrongOneIsRefused(t *testing.T) {
	turn := overload.WorkloadState{Wants: 0.4, At: at(1), Held: 0.5, Rank: 2, Slice: 30, Capped: true, Served: at(2), ExcludedUntil: at(3), InTime: at(2), Reports: 4, Admitted: true, Partial: true, Asked: 40}
	b, err := json.Marshal(turn)
	if err != nil {
		t.Fatal(err)
	}
	var back overload.WorkloadState
	if err := json.Unmarshal(b, &back); err != nil || back != turn || !back.Valid() {
		t.Errorf("%s: %+v, %v", b, back, err)
	}
	for _, bad := range []overload.WorkloadState{{Wants: -1}, {Wants: math.Inf(1)}, {Held: math.NaN()}, {Rank: -1}, {Reports: -1}, {Slice: -1}, {Slice: policy.MaxUnits + 1}} {
		if bad.Valid() {
			t.Errorf("%+v is valid", bad)
		}
	}
}

// Whoever comes, goes, starves or is served, in whatever round: no two are served in one turn, and
// while somebody is chosen each has a share.
func TestWhateverHappensATurnIsOnesOwn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(welfare.Social{}, 5)
		all := w.members
		if rapid.Bool().Draw(rt, "restarted") {
			for i := range all {
				all[i].State = overload.WorkloadState{Wants: rapid.Float64Range(0, 2).Draw(rt, "wants"), Rank: rapid.IntRange(0, 5).Draw(rt, "rank"), Slice: rapid.IntRange(0, 100).Draw(rt, "slice")}
			}
		}
		for s := 0; s < 300; s += rapid.IntRange(1, 40).Draw(rt, "seconds") {
			w.members = nil
			var of []int
			for i := range all {
				if rapid.IntRange(0, 4).Draw(rt, "missing") > 0 {
					w.members, of = append(w.members, all[i]), append(of, i)
				}
			}
			costs, performances := make([]float64, len(of)), make([]float64, len(of))
			for i := range of {
				costs[i], performances[i] = rapid.Float64Range(0, 1).Draw(rt, "cost"), rapid.SampledFrom([]float64{0, 0.6, 1}).Draw(rt, "performance")
			}
			verdict, before := w.second(s, costs, performances), w.state.ChoseAt
			ranks := map[int]bool{}
			for k, i := range of {
				all[i] = w.members[k]
				turn := all[i].State
				if verdict == overload.Chosen && (turn.Slice < 1 || before.Equal(at(s)) && turn.Rank > 0 && ranks[turn.Rank]) || !turn.Valid() {
					rt.Fatalf("second %d: %+v", s, w.members)
				}
				ranks[turn.Rank] = true
			}
		}
	})
}
