package local

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

func TestHostileObservationsNeverPushAnybodyBelowItsFloorNorTheSumOverCapacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.Float64Range(0.5, 64).Draw(t, "capacity")
		w := newWorld(capacity, rapid.Float64Range(0, capacity).Draw(t, "lendable"), drawEnvelopes(t, capacity)...)
		w.loses = func() bool { return rapid.IntRange(0, 4).Draw(t, "lost") == 0 }
		for range rapid.IntRange(1, 60).Draw(t, "ticks") {
			for i := range w.set {
				w.used[i] += period * rapid.Float64Range(0, 8).Draw(t, "use")
				w.stalled[i] += period * rapid.Float64Range(0, 1).Draw(t, "stall")
				if rapid.IntRange(0, 30).Draw(t, "vanishes") == 0 {
					w.gone[i] = true
				}
			}
			w.at += time.Duration(rapid.SampledFrom([]int64{0, 50, 100, 100, 100, 101, 299, 1000, 60_000, -500}).Draw(t, "ms")) * time.Millisecond
			l := Look{At: w.at, Groups: w.readings()}
			for i := range l.Groups {
				r := &l.Groups[i]
				if r.State == Gone {
					continue
				}
				r.Used, r.Stalled = hostile(t, r.Used), hostile(t, r.Stalled)
				if rapid.IntRange(0, 5).Draw(t, "unread") == 0 {
					r.State, r.Set = Missing, math.NaN()
				}
			}
			if rapid.Bool().Draw(t, "psi") {
				x := hostile(t, 0.05)
				l.Contention = &x
			}
			l.Groups = l.Groups[:rapid.IntRange(0, len(l.Groups)).Draw(t, "shown")]
			w.look(l)
		}
		if w.over != "" || w.low != "" {
			t.Fatalf("over: %q, out of the envelope: %q", w.over, w.low)
		}
	})
}

// fuzz plays ticks of random work with lost writes and unread files.
func TestTheSumIsNeverOverCapacityInALongRunWithLostWritesAndUnreadFiles(t *testing.T) {
	seed := uint64(1)
	next := func() float64 { // xorshift: a million draws of rapid take minutes
		seed ^= seed << 13
		seed ^= seed >> 7
		seed ^= seed << 17
		return float64(seed>>11) / (1 << 53)
	}
	ticks := 1_000_000
	if testing.Short() {
		ticks = 50_000
	}
	w := newWorld(8, 3, envelope(0.5, 1, 6), envelope(0.3, 1, 4), envelope(0.6, 2, 8), envelope(0.1, 0.5, 2), envelope(0, 0.5, 5))
	w.loses = func() bool { return next() < 0.05 }
	w.plan.Until = time.Duration(ticks) * time.Minute
	if err := w.h.SetPlan(&w.plan); err != nil {
		t.Fatal(err)
	}
	load := [5]float64{1, 1, 1, 1, 1}
	for range ticks {
		for i := range w.set {
			if next() < 0.02 {
				load[i] = 8 * next() * next()
			}
			can := w.set[i] * period
			w.backlog[i] = math.Min(5, w.backlog[i]+load[i]*next()*2*period)
			done := math.Min(w.backlog[i], can)
			w.backlog[i] -= done
			w.used[i] += done
			if w.backlog[i] > 0 {
				w.stalled[i] += period * next()
			}
		}
		w.at += Tick
		l := Look{At: w.at, Groups: w.readings()}
		for i := range l.Groups {
			if next() < 0.05 {
				l.Groups[i].State, l.Groups[i].Set = Missing, math.NaN()
			}
		}
		d := w.h.Tick(&l)
		w.apply(d.Shrinks)
		found := append([]float64(nil), w.set...)
		for i := range found {
			if next() < 0.1 {
				found[i] = math.NaN()
			}
		}
		w.apply(w.h.Grow(found))
		if w.over != "" || w.low != "" {
			t.Fatalf("over: %q, out of the envelope: %q", w.over, w.low)
		}
	}
}

func TestWithoutRoomToLendNobodyLeavesItsTarget(t *testing.T) {
	e := envelope(1, 2, 8)
	e.Lend, e.Borrow = false, false
	w := newWorld(8, 4, e, e)
	for range 100 {
		if d := w.tick(0.8, 0); len(d.Shrinks) > 0 {
			t.Fatalf("%+v", d)
		}
	}
	if w.set[0] != 2 || w.set[1] != 2 {
		t.Errorf("set %v", w.set)
	}
}

func TestABurstBorrowsWhatOthersDoNotUseAndTheLoanEndsWithIt(t *testing.T) {
	w := newWorld(4, 0, envelope(0.5, 2, 4), envelope(0.5, 2, 4))
	for range 50 {
		w.tick(0.08, 0.02)
	}
	for range 5 {
		w.tick(0.3, 0.02)
	}
	if w.set[0] < 2.8 || w.set[1] > 1.2 {
		t.Fatalf("in the burst: %v", w.set)
	}
	for range 60 {
		w.tick(0.08, 0.02)
	}
	if w.set[0] > 2 {
		t.Errorf("a loan without demand: %v", w.set)
	}
}

func TestALenderGetsItsTargetBackInTheTickInWhichItAsks(t *testing.T) {
	w := newWorld(4, 0, envelope(0.5, 2, 4), envelope(0.5, 2, 4))
	for range 60 {
		w.tick(0.35, 0.02)
	}
	if w.set[0] < 2.5 || w.set[1] > 1 {
		t.Fatalf("no loan: %v", w.set)
	}
	for range 3 {
		w.tick(0.35, 0.4)
	}
	if w.set[1] < 2*(1-slack) || w.set[0] < 2*(1-slack) {
		t.Errorf("three ticks after both want more than their targets: %v", w.set)
	}
}

func TestASilentGroupReturnsToItsTargetAfterThreeTicks(t *testing.T) {
	w := newWorld(4, 0, envelope(0.5, 2, 4), envelope(0.5, 2, 4))
	for range 60 {
		w.tick(0.35, 0.02)
	}
	borrowed, lent := w.set[0], w.set[1]
	for tick := 1; tick <= silentTicks; tick++ {
		w.at += Tick
		l := Look{At: w.at, Groups: w.readings()}
		for i := range l.Groups {
			l.Groups[i].State = Missing
		}
		w.look(l)
		if tick < silentTicks && (w.set[0] != borrowed || w.set[1] != lent) {
			t.Fatalf("tick %d without a reading: %v", tick, w.set)
		}
	}
	if !near(w.set[0], 2) || !near(w.set[1], 2) {
		t.Errorf("set %v", w.set)
	}
}

func TestAStoppedAgentReturnsAllToTheirTargets(t *testing.T) {
	for _, stop := range []time.Duration{time.Second, time.Minute, -time.Second} {
		w := newWorld(4, 0, envelope(0.5, 2, 4), envelope(0.5, 2, 4))
		for range 60 {
			w.tick(0.35, 0.02)
		}
		w.at += stop
		if d := w.look(Look{At: w.at, Groups: w.readings()}); !d.Late {
			t.Errorf("after %v: not late", stop)
		}
		if !near(w.set[0], 2) || !near(w.set[1], 2) {
			t.Errorf("after %v: %v", stop, w.set)
		}
		for range 10 {
			w.tick(0.3, 0.02)
		}
		if w.set[0] < 2.5 {
			t.Errorf("after %v the loop does not go on: %v", stop, w.set)
		}
	}
}

func TestAtTheEndOfTheLeaseLoansEnd(t *testing.T) {
	w := newWorld(4, 0, envelope(0.5, 2, 4), envelope(0.5, 2, 4))
	for range 60 {
		w.tick(0.35, 0.02)
	}
	w.plan.Until = w.at
	if err := w.h.SetPlan(&w.plan); err != nil {
		t.Fatal(err)
	}
	if d := w.tick(0.35, 0.02); !d.Expired || !near(w.set[0], 2) || !near(w.set[1], 2) {
		t.Errorf("%+v, set %v", d, w.set)
	}
}

func TestCountersThatGoBackMoveNobody(t *testing.T) {
	w := newWorld(4, 0, envelope(0.5, 2, 4))
	for range 20 {
		w.tick(0.15)
	}
	before := w.set[0]
	w.used[0], w.stalled[0] = 0, 0
	w.tick(0.15)
	if w.set[0] != before {
		t.Errorf("%v, was %v", w.set[0], before)
	}
	w.tick(0.15)
	if w.h.groups[0].silent != 0 {
		t.Error("the second reading after a reset says nothing")
	}
}

func TestAGroupThatVanishesFreesItsLoanAndComesBackAtItsTarget(t *testing.T) {
	w := newWorld(4, 0, envelope(0.5, 2, 4), envelope(0.5, 2, 4))
	for range 60 {
		w.tick(0.35, 0.02)
	}
	w.gone[0] = true
	w.tick(0, 0.3)
	for range 10 {
		w.tick(0, 0.35)
	}
	if w.set[1] < 2.5 {
		t.Errorf("what the vanished group held is not free: %v", w.set)
	}
	if s := w.h.Status(nil)[0]; s.Set != 0 {
		t.Errorf("%+v", s)
	}
}

func TestAFullHostGrowsNobodyOverItsTargetAndAsksForARoundOnce(t *testing.T) {
	w := newWorld(4, 0, envelope(0.5, 2, 4), envelope(0.5, 1, 4))
	full, asks := 0.5, 0
	for i := range 50 {
		w.backlog[0] += 0.4
		done := math.Min(w.backlog[0], w.set[0]*period)
		w.backlog[0] -= done
		w.used[0] += done
		w.stalled[0] += 0.05
		w.at += Tick
		for _, a := range w.look(Look{At: w.at, Contention: &full, Groups: w.readings()}).Asks {
			if a.Cause == HostFull && a.Group == 0 {
				asks++
			}
		}
		if w.set[0] > 2 {
			t.Fatalf("tick %d: %v", i, w.set)
		}
	}
	if asks != 1 {
		t.Errorf("asked %d times in 5 s", asks)
	}
}

func TestALoanThatLastsAsksForARoundEveryTenSeconds(t *testing.T) {
	w := newWorld(4, 0, envelope(0.5, 2, 4), envelope(0.5, 2, 4))
	var asked []time.Duration
	for range 300 {
		for _, a := range w.tick(0.24, 0.02).Asks {
			if a.Cause == LongLoan {
				asked = append(asked, w.at-a.Since)
			}
		}
	}
	if len(asked) != 3 || asked[0] < loanAsks || asked[0] > loanAsks+2*Tick {
		t.Errorf("asked after %v", asked)
	}
}

func TestAForeignValueIsLeftAloneAndCounted(t *testing.T) {
	w := newWorld(6, 2, envelope(0.5, 2, 4), envelope(0.5, 2, 4))
	for range 20 {
		w.tick(0.3, 0.3)
	}
	w.set[1] = 5 // an operator's, outside its envelope
	for range 30 {
		w.tick(0.35, 0.3)
		if w.set[1] != 5 {
			t.Fatalf("a foreign value was written over: %v", w.set)
		}
	}
	if !near(w.set[0], 2) || !w.h.Status(nil)[1].Foreign {
		t.Errorf("beside a foreign value that leaves no room: %v", w.set)
	}
	w.set[1] = 2
	for range 10 {
		w.tick(0.35, 0.1)
	}
	if w.set[0] < 2.5 {
		t.Errorf("after it went back: %v", w.set)
	}
}

func TestAnInvalidPlanIsRefusedAndTheOneBeforeStays(t *testing.T) {
	w := newWorld(4, 0, envelope(0.5, 2, 4))
	nan := math.NaN()
	for name, p := range map[string]Plan{
		"over capacity": {Capacity: 1, Groups: []Group{{"a", envelope(0, 2, 3)}}},
		"twice":         {Capacity: 9, Groups: []Group{{"a", envelope(0, 2, 3)}, {"a", envelope(0, 2, 3)}}},
		"no name":       {Capacity: 9, Groups: []Group{{"", envelope(0, 2, 3)}}},
		"NaN":           {Capacity: nan},
		"lendable":      {Capacity: 1, Lendable: math.Inf(1)},
		"envelope":      {Capacity: 9, Groups: []Group{{"a", trimtab.Envelope{Floor: 2, Target: 1, Ceiling: 3}}}},
	} {
		if err := w.h.SetPlan(&p); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s := w.h.Status(nil); len(s) != 1 || s[0].Name != "g0" {
		t.Errorf("%+v", s)
	}
}

func TestCountersTellWhatWasGrantedLentAndBorrowed(t *testing.T) {
	w := newWorld(4, 0, envelope(0.5, 2, 4), envelope(0.5, 2, 4))
	granted := [2]float64{}
	w.tick(0, 0)
	for range 100 {
		for i := range granted {
			granted[i] += w.set[i] * period
		}
		w.tick(0.3, 0.02)
	}
	for i, s := range w.h.Status(nil) {
		if math.Abs(s.Granted-granted[i]) > 1e-6*granted[i] {
			t.Errorf("group %d: granted %v, want %v", i, s.Granted, granted[i])
		}
		if d := s.Borrowed - s.Lent - (s.Granted - 2*10); math.Abs(d) > 1e-6 {
			t.Errorf("group %d: %+v do not add up by %v", i, s, d)
		}
	}
}

func TestATickThatComesTooEarlyWritesNothing(t *testing.T) {
	w := newWorld(4, 0, envelope(0.5, 2, 4))
	for range 20 {
		w.tick(0.02)
	}
	w.used[0] += 5
	if d := w.look(Look{At: w.at + Tick/4, Groups: w.readings()}); len(d.Shrinks) > 0 || d.Late {
		t.Errorf("%+v", d)
	}
}

// BenchmarkTick is what a tick costs with 100 groups, half of which move.
func BenchmarkTick(b *testing.B) {
	var es []trimtab.Envelope
	for range 100 {
		es = append(es, envelope(0.3, 1, 4))
	}
	w := newWorld(150, 30, es...)
	w.plan.Until = math.MaxInt64
	if err := w.h.SetPlan(&w.plan); err != nil {
		b.Fatal(err)
	}
	r, found := w.readings(), make([]float64, 100)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		w.at += Tick
		for i := range r {
			r[i].Used += 0.05 + 0.05*float64((n/7+i)%3)
			r[i].Stalled += 0.01 * float64((n+i)%2)
		}
		d := w.h.Tick(&Look{At: w.at, Groups: r})
		for _, x := range d.Shrinks {
			r[x.Group].Set = x.Set
		}
		for i := range r {
			found[i] = r[i].Set
		}
		for _, x := range w.h.Grow(found) {
			r[x.Group].Set = x.Set
		}
	}
}
