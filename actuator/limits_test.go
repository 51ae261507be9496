package actuator_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// asked is a person's command to apply a recommended plan, now.
func (h *host) asked(plan string) { h.t.Helper(); h.askedAt(plan, h.wall) }

func (h *host) askedAt(plan string, at time.Time) {
	h.t.Helper()
	if err := h.Command(h.t.Context(), &trimtab.Command{Pool: "p", Verb: trimtab.Apply, Time: at, Plan: plan}); err != nil {
		h.t.Fatal(err)
	}
}

func TestTheHostsOwnCapacityHoldsWhateverThePlanClaims(t *testing.T) {
	h := newHost(t, units(1), units(1), units(1))
	h.config.Limits.Capacity = map[string]float64{"cpu": 4}
	h.open()
	is(t, h.statuses(h.plan(1, 1, set(0, units(1), units(3)), set(1, units(1), units(2)), set(2, units(1), units(2)))),
		trimtab.Refused, trimtab.Written, trimtab.Refused)
	h.want(units(1), units(2), units(1))
}

func TestAResourceThatTheHostHasNoCapacityOfIsNotRaised(t *testing.T) {
	h := newHost(t, units(1))
	h.config.Limits.Capacity = map[string]float64{"memory": 1 << 30}
	h.open()
	is(t, h.statuses(h.plan(1, 1, set(0, units(1), units(1.5)))), trimtab.Refused)
	is(t, h.statuses(h.plan(1, 2, set(0, units(1), units(0.5)))), trimtab.Written)
}

func TestAKnobThatIsNotInThePlanCountsWithWhatSomebodyElseJustGaveIt(t *testing.T) {
	h := newHost(t, units(1), units(1), units(1))
	h.config.Limits.Capacity = map[string]float64{"cpu": 4}
	h.open()
	// Between the first reading and the write somebody raises w2.
	h.knobs[0].before = func(trimtab.Amount) error { h.put(h.knobs[2], units(2)); return nil }
	is(t, h.statuses(h.plan(1, 1, set(0, units(1), units(0.5)), set(1, units(1), units(2)))), trimtab.Written, trimtab.Refused)
	h.want(units(0.5), units(1), units(2))
}

func TestAKnobThatSomebodyElseTurnsDuringThePlanIsLeftAlone(t *testing.T) {
	h := newHost(t, units(2), units(2)).open()
	h.knobs[0].before = func(trimtab.Amount) error { h.put(h.knobs[1], units(5)); return nil }
	is(t, h.statuses(h.plan(1, 1, set(0, units(2), units(1)), set(1, units(2), units(3)))), trimtab.Written, trimtab.Refused)
	h.want(units(1), units(5))
}

func TestALeaseIsCutToTheLongestThatTheHostAllows(t *testing.T) {
	h := newHost(t, units(2))
	h.config.Limits.MaxLease = 40 * time.Second
	h.open()
	p := h.plan(1, 1, set(0, units(2), units(1)))
	p.Lease = 1e9
	h.statuses(p)
	if left := h.Holding().LeaseLeft; left != 40 {
		t.Errorf("lease left %v, want 40", left)
	}
	h.pass(40 * time.Second)
	h.Tick(t.Context())
	h.want(units(2))
	// Nor does a long lease make an old plan young.
	p = h.plan(1, 2, set(0, units(2), units(1)))
	p.Lease, p.Time = 1e9, h.wall.Add(-time.Minute)
	if why := h.refused(p); !strings.Contains(why, "expired") {
		t.Errorf("reason %q", why)
	}
}

func TestAPlanFromTheFutureIsRefused(t *testing.T) {
	h := newHost(t, units(2)).open()
	for i, ahead := range []time.Duration{31 * time.Second, time.Hour, 1<<63 - 1} {
		p := h.plan(1, uint64(i+1), set(0, units(2), units(1)))
		p.Time = h.wall.Add(ahead)
		if why := h.refused(p); !strings.Contains(why, "check the clocks") {
			t.Errorf("reason %q", why)
		}
	}
	p := h.plan(1, 1, set(0, units(2), units(1)))
	p.Time = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	h.refused(p)
	p.Time = h.wall.Add(30 * time.Second)
	is(t, h.statuses(p), trimtab.Written)
}

func TestAnEpochThatNoPoolCanHaveComeToIsRefusedAndLocksNobodyOut(t *testing.T) {
	h := newHost(t, units(2)).open()
	h.statuses(h.plan(3, 1))
	for _, epoch := range []uint64{1<<64 - 1, 1 << 62, uint64(h.wall.UnixMilli())} {
		if why := h.refused(h.plan(epoch, 1, set(0, units(2), units(1)))); !strings.Contains(why, "made up") {
			t.Errorf("epoch %d: %s", epoch, why)
		}
	}
	is(t, h.statuses(h.plan(3, 2, set(0, units(2), units(1)))), trimtab.Written)
}

// A forged plan may use up the highest epoch there is: the one after it is
// plausible a millisecond later.
func TestAboveTheHighestPlausibleEpochThereIsSoonAnother(t *testing.T) {
	h := newHost(t, units(2)).open()
	top := uint64(h.wall.Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).Milliseconds())
	h.statuses(h.plan(top, 1<<64-1))
	h.pass(time.Millisecond)
	is(t, h.statuses(h.plan(h.Holding().Epoch+1, 1, set(0, units(2), units(1)))), trimtab.Written)
}

func TestAnEpochThatWasAcceptedWhileTheClockWasAheadLocksNobodyOut(t *testing.T) {
	h := newHost(t, units(2)).open()
	h.wall = h.wall.AddDate(10, 0, 0)
	h.statuses(h.plan(uint64(h.wall.AddDate(-1, 0, 0).Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).Milliseconds()), 1))
	h.wall = h.wall.AddDate(-10, 0, 0)
	is(t, h.statuses(h.plan(4, 1, set(0, units(2), units(1)))), trimtab.Written)
}

func TestAnotherPlanOfTheSameNameIsNotTakenForARepetition(t *testing.T) {
	h := newHost(t, units(2)).open()
	h.statuses(h.plan(1, 1, set(0, units(2), units(1))))
	if why := h.refused(h.plan(1, 1, set(0, units(1), units(3)))); !strings.Contains(why, "another plan 1-1") {
		t.Errorf("reason %q", why)
	}
	h.want(units(1))
}

func TestATargetKeepsHalfOfWhatItHadInTheWindowHoweverManyPlansCome(t *testing.T) {
	h := newHost(t, units(8))
	h.config.Limits.Fall = 0.5
	h.open()
	for sequence := uint64(1); sequence <= 49; sequence++ {
		now := h.Holding().Targets[0].Now
		h.statuses(h.plan(1, sequence, set(0, now, units(now.Value*0.8))))
		h.pass(100 * time.Millisecond)
	}
	h.want(units(4))
	// The window has moved on: half of that may go.
	h.pass(time.Second)
	o := h.Handle(t.Context(), h.plan(1, 50, set(0, units(4), units(0.1))))
	h.pass(actuator.DefaultFallWindow)
	o = h.Handle(t.Context(), h.plan(1, 51, set(0, o.Results[0].Found, units(0.1))))
	if !strings.Contains(o.Results[0].Reason, "leaves at least 50%") {
		t.Errorf("reason %q", o.Results[0].Reason)
	}
	h.want(units(1))
	// And what was raised in between counts.
	h.pass(time.Minute)
	h.statuses(h.plan(1, 52, set(0, units(1), units(8))))
	is(t, h.statuses(h.plan(1, 53, set(0, units(8), units(1)))), trimtab.Written)
	h.want(units(4))
}

func TestOfInstancesOneMayGoInAWindowTheLastOneToo(t *testing.T) {
	h := newHost(t, units(3))
	h.config.Limits.Fall = 0.5
	h.config.Targets[0].Resource = trimtab.Replicas
	h.config.Targets[0].Min = 0
	h.open()
	to := func(sequence uint64, from, to float64) {
		a := set(0, units(from), units(to))
		a.Resource = trimtab.Replicas
		h.statuses(h.plan(1, sequence, a))
	}
	to(1, 3, 0)
	h.want(units(1.5)) // the knob has hundredths; what was asked for was cut to half
	h.pass(actuator.DefaultFallWindow + time.Millisecond)
	to(2, 1.5, 1)
	h.pass(actuator.DefaultFallWindow + time.Millisecond)
	to(3, 1, 0)
	h.want(units(0))
}

func TestWithinTwoSecondsHalfOfTheTargetsAreLoweredAndNoMore(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 1, 3: 2, 4: 2, 6: 3, 7: 4} {
		h := newHost(t, make([]trimtab.Amount, n)...)
		for _, k := range h.knobs {
			h.put(k, units(4))
		}
		h.config.Limits.Share = 0.5
		h.open()
		lowered := func(sequence uint64) (count int) {
			p := h.plan(1, sequence)
			for i, held := range h.Holding().Targets {
				p.Actions = append(p.Actions, set(i, held.Now, units(held.Now.Value-0.5)))
			}
			for _, s := range h.statuses(p) {
				if s == trimtab.Written {
					count++
				}
			}
			return count
		}
		if got := lowered(1); got != want {
			t.Errorf("of %d targets %d were lowered, want %d", n, got, want)
		}
		// Those that were may be again, others may not: not before the window is over.
		h.pass(actuator.DefaultShareWindow - time.Millisecond)
		if got := lowered(2); got != want {
			t.Errorf("of %d targets %d were lowered within the window, want the same %d", n, got, want)
		}
	}
}

func TestAPlanAppliesToARecommendingTargetOnlyOnACommandThatThisHostHeard(t *testing.T) {
	h := newHost(t, units(2), units(2))
	h.config.Targets[0].Mode = trimtab.Recommend
	h.open()
	sequence := uint64(0)
	applies := func(plan string) *trimtab.Plan {
		sequence++
		p := h.plan(1, sequence, set(0, h.Holding().Targets[0].Now, units(1+float64(sequence)/10)))
		p.Applies = plan
		return p
	}
	if why := h.refused(applies("3-17")); !strings.Contains(why, "heard of no command") {
		t.Errorf("without a command: %s", why)
	}
	h.asked("3-17")
	h.refused(applies("3-18"))
	first := applies("3-17")
	is(t, h.statuses(first), trimtab.Written)
	// The next step of it goes on, another plan does not, nor does the same
	// command again give another one leave.
	second := h.plan(1, first.Sequence, set(0, first.Actions[0].Set, units(2)))
	second.Step, second.Applies = 2, "3-17"
	is(t, h.statuses(second), trimtab.Written)
	h.asked("3-17")
	if why := h.refused(applies("3-17")); !strings.Contains(why, fmt.Sprint("carried out as 1-", first.Sequence)) {
		t.Errorf("twice: %s", why)
	}
	// What was asked for long ago, or by a clock that is ahead, counts as nothing.
	for _, at := range []time.Duration{-3 * time.Minute, time.Minute} {
		h.askedAt("3-20", h.wall.Add(at))
		h.refused(applies("3-20"))
	}
	// A command that is fresh ages.
	h.asked("3-21")
	h.pass(3 * time.Minute)
	h.refused(applies("3-21"))
}

func TestAHostThatAllowsNoApplyRefusesIt(t *testing.T) {
	h := newHost(t, units(2))
	h.config.Targets[0].Mode, h.config.NoApply = trimtab.Recommend, true
	h.open().asked("3-17")
	p := h.plan(1, 1, set(0, units(2), units(1)))
	p.Applies = "3-17"
	if why := h.refused(p); !strings.Contains(why, "actuator.apply") {
		t.Errorf("reason %q", why)
	}
}

func TestATargetThatIsOffIsNotWrittenByAnyApply(t *testing.T) {
	h := newHost(t, units(2))
	h.config.Targets[0].Mode = trimtab.Off
	h.open().asked("3-17")
	p := h.plan(1, 1, set(0, units(2), units(1)))
	p.Applies = "3-17"
	is(t, h.statuses(p), trimtab.Refused)
	h.want(units(2))
}

func TestOverTheBusAnAppliedPlanWaitsForItsCommand(t *testing.T) {
	h := newHost(t, units(2))
	h.config.Targets[0].Mode = trimtab.Recommend
	r := h.run(newBus(t))
	p := h.plan(1, 1, set(0, units(2), units(1)))
	p.Applies = "1-9"
	if err := r.bus.Publish(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := r.bus.Publish(t.Context(), &trimtab.Command{Pool: "p", Verb: trimtab.Apply, Time: time.Now(), Plan: "1-9"}); err != nil {
		t.Fatal(err)
	}
	select {
	case o := <-r.outcomes:
		if o.Refused != "" || o.Results[0].Status != trimtab.Written {
			t.Errorf("outcome %+v", o)
		}
	case <-time.After(time.Minute):
		t.Fatal("no outcome")
	}
}

// weighed is a knob whose amount is a share by weight below a limit that is used up, or not.
type weighed struct {
	*fileKnob
	contended bool
}

func (weighed) Fit(context.Context, trimtab.Amount) error             { return nil }
func (weighed) Adopted(context.Context, trimtab.Amount) (bool, error) { return true, nil }
func (weighed) Adopt(context.Context, trimtab.Amount) error           { return nil }
func (weighed) Cap(bool)                                              {}
func (weighed) Capped() bool                                          { return false }
func (weighed) Reserves() bool                                        { return false }
func (k weighed) Contended() bool                                     { return k.contended }

func (k weighed) Traits() actuator.Traits {
	t := k.fileKnob.Traits()
	t.Shared = k
	return t
}

func TestAShareMayFallAtOnceWhileWhatAllShareIsUsedUp(t *testing.T) {
	for contended, want := range map[bool]float64{false: 4, true: 0.5} {
		h := newHost(t, units(8))
		h.config.Limits.Fall = 0.5
		h.config.Targets[0].Knob = weighed{h.knobs[0], contended}
		h.open()
		h.statuses(h.plan(1, 1, set(0, units(8), units(0.5))))
		h.want(units(want))
	}
}
