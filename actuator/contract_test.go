package actuator_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/hostfs"
)

func is(t *testing.T, got []trimtab.Status, want ...trimtab.Status) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("statuses %v, want %v", got, want)
	}
}

func TestAPlanIsWrittenAndReadBack(t *testing.T) {
	h := newHost(t, trimtab.Unlimited(), units(2)).open()
	o := h.Handle(t.Context(), h.plan(1, 1, set(0, trimtab.Unlimited(), units(1.5)), set(1, units(2), units(3))))
	want := []trimtab.Result{
		{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "w0", Resource: "cpu"}, Status: trimtab.Written, Before: trimtab.Unlimited(), Asked: units(1.5), Found: units(1.5), Known: true},
		{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "w1", Resource: "cpu"}, Status: trimtab.Written, Before: units(2), Asked: units(3), Found: units(3), Known: true},
	}
	if diff := cmp.Diff(want, o.Results); diff != "" || o.Refused != "" {
		t.Errorf("%s %s", o.Refused, diff)
	}
	h.want(units(1.5), units(3))
}

func TestAnOlderEpochHasNoEffect(t *testing.T) {
	h := newHost(t, units(2)).open()
	h.statuses(h.plan(5, 1))
	if why := h.refused(h.plan(4, 99, set(0, units(2), units(1)))); !strings.Contains(why, "epoch 5") {
		t.Errorf("reason %q", why)
	}
	h.want(units(2))
	// Nor after a crash: the epoch was durable before anything else.
	h.crash().open().refused(h.plan(4, 100, set(0, units(2), units(1))))
	h.want(units(2))
}

func TestALowerSequenceOrStepIsStale(t *testing.T) {
	h := newHost(t, units(2)).open()
	h.statuses(h.plan(1, 7))
	h.refused(h.plan(1, 6, set(0, units(2), units(1))))
	later := h.plan(1, 8)
	later.Step = 3
	h.statuses(later)
	earlier := h.plan(1, 8, set(0, units(2), units(1)))
	earlier.Step = 2
	h.refused(earlier)
	h.want(units(2))
}

func TestTheSameStepAgainGetsTheSameAnswerWithoutASecondEffect(t *testing.T) {
	h := newHost(t, units(2)).open()
	p := h.plan(1, 1, set(0, units(2), units(1)))
	first := h.Handle(t.Context(), p)
	// Even when somebody turned the knob meanwhile.
	h.put(h.knobs[0], units(2))
	h.pass(time.Second)
	if diff := cmp.Diff(first, h.Handle(t.Context(), p)); diff != "" {
		t.Error(diff)
	}
	if h.knobs[0].writes != 1 {
		t.Errorf("%d writes, want 1", h.knobs[0].writes)
	}
}

func TestTheSameStepAfterACrashFinishesWhatWasBegun(t *testing.T) {
	h := newHost(t, units(2), units(2)).open()
	p := h.plan(1, 1, set(0, units(2), units(1)), set(1, units(2), units(3)))
	// Crash after the first write, before the second.
	h.knobs[1].before = func(trimtab.Amount) error { return errors.New("crashed") }
	h.statuses(p)
	h.knobs[1].before = nil
	is(t, h.crash().open().statuses(p), trimtab.Equal, trimtab.Written)
	if h.knobs[0].writes != 1 {
		t.Errorf("%d writes, want 1", h.knobs[0].writes)
	}
	h.want(units(1), units(3))
}

func TestPositionBaselineAndIntentAreDurableBeforeTheFirstEffect(t *testing.T) {
	h := newHost(t, units(2))
	var at string
	h.knobs[0].before = func(trimtab.Amount) error {
		state, _, err := hostfs.ReadJournal(h.config.Dir)
		at = fmt.Sprintf("%s %s %v", state["position"], state["knob/cpu/w0"], err)
		return nil
	}
	h.open().statuses(h.plan(3, 4, set(0, units(2), units(1))))
	for _, want := range []string{`"epoch":3,"sequence":4,"step":1`, `"baseline":2`, `"wrote":[1]`} {
		if !strings.Contains(at, want) {
			t.Errorf("the journal at the first effect lacks %s: %s", want, at)
		}
	}
}

func TestWithoutAJournalNothingIsWritten(t *testing.T) {
	h := newHost(t, units(2), units(2))
	h.config.JournalSize = 300 // room for a position and a lease, not for a knob
	h.open().statuses(h.plan(1, 1))
	if why := h.refused(h.plan(1, 2, set(0, units(2), units(1)))); !strings.Contains(why, "nothing is written") {
		t.Errorf("reason %q", why)
	}
	h.want(units(2), units(2))
	if got := h.Holding().Sequence; got != 1 {
		t.Errorf("the refused plan became sequence %d", got)
	}
}

func TestValuesAreClampedToDeclaredBounds(t *testing.T) {
	h := newHost(t, units(2), units(2), units(2)).open()
	o := h.Handle(t.Context(), h.plan(1, 1, set(0, units(2), units(0)), set(1, units(2), units(1e9)), set(2, units(2), trimtab.Unlimited())))
	h.want(units(0.1), units(8), units(8))
	for _, r := range o.Results {
		if !strings.Contains(r.Reason, "clamped") {
			t.Errorf("%s: reason %q", r.Workload, r.Reason)
		}
	}
}

func TestAnUnexpectedValueIsNotOverwritten(t *testing.T) {
	h := newHost(t, units(2)).open()
	is(t, h.statuses(h.plan(1, 1, set(0, units(3), units(1)))), trimtab.Refused)
	h.want(units(2))
}

func TestEqualIsNotWritten(t *testing.T) {
	h := newHost(t, units(2)).open()
	is(t, h.statuses(h.plan(1, 1, set(0, units(2), units(2.001)))), trimtab.Equal)
	if h.knobs[0].writes != 0 {
		t.Errorf("%d writes", h.knobs[0].writes)
	}
}

func TestOnlyModeActOnBothSidesWrites(t *testing.T) {
	h := newHost(t, units(2), units(2), units(2))
	h.config.Targets[0].Mode = trimtab.Off
	h.config.Targets[1].Mode = trimtab.Recommend
	h.open()
	cautious := set(2, units(2), units(1))
	cautious.Mode = trimtab.Recommend
	is(t, h.statuses(h.plan(1, 1, set(0, units(2), units(1)), set(1, units(2), units(1)), cautious)),
		trimtab.Refused, trimtab.Recommended, trimtab.Recommended)
	h.want(units(2), units(2), units(2))
}

func TestAKnobThatMayNotBeWrittenIsReadAndRecommendedForAndRefusedToAct(t *testing.T) {
	h := newHost(t, units(2), trimtab.Unlimited(), units(2))
	for i, mode := range []trimtab.Mode{trimtab.Recommend, trimtab.Recommend, trimtab.Act} {
		h.config.Targets[i].Mode, h.knobs[i].readOnly = mode, true
	}
	h.open()
	is(t, h.statuses(h.plan(1, 1, set(0, units(2), units(1)), set(1, trimtab.Unlimited(), units(4)), set(2, units(2), units(1)))),
		trimtab.Recommended, trimtab.Recommended, trimtab.Refused)
	h.want(units(2), trimtab.Unlimited(), units(2))
	for i, held := range h.Holding().Targets {
		text, other := held.ReadOnly, held.Problem
		if held.Workload == "w2" {
			text, other = held.Problem, held.ReadOnly
		}
		if !strings.Contains(text, "somebody else's") || other != "" {
			t.Errorf("target %d: %+v", i, held)
		}
	}
	// Once its owner lets it go, it is taken over by itself.
	for _, k := range h.knobs {
		k.readOnly = false
	}
	h.Tick(t.Context())
	for _, held := range h.Holding().Targets {
		if held.Problem != "" || held.ReadOnly != "" {
			t.Errorf("still: %+v", held)
		}
	}
}

func TestAnAppliedPlanThatMayNotBeWrittenAsAWholeIsNotDoneByHalves(t *testing.T) {
	h := newHost(t, units(2), units(2), units(2))
	for i := range h.config.Targets[:2] {
		h.config.Targets[i].Mode = trimtab.Recommend
	}
	h.knobs[1].readOnly = true
	h.open().asked("1-0")
	p := h.plan(1, 1, set(0, units(2), units(1)), set(1, units(2), units(3)))
	p.Applies = "1-0"
	is(t, h.statuses(p), trimtab.Refused, trimtab.Refused)
	h.want(units(2), units(2), units(2))
	h.knobs[1].readOnly = false
	h.pass(time.Millisecond)
	h.asked("1-0")
	p = h.plan(1, 2, p.Actions...)
	p.Applies = "1-0"
	is(t, h.statuses(p), trimtab.Written, trimtab.Written)
}

func TestActionsOfOtherHostsAreNotAnsweredAndUnknownTargetsAreRefused(t *testing.T) {
	h := newHost(t, units(2)).open()
	elsewhere := set(0, units(2), units(1))
	elsewhere.Host = "other"
	is(t, h.statuses(h.plan(1, 1, elsewhere, set(7, units(2), units(1)))), trimtab.Refused)
	h.want(units(2))
}

func TestPlansOfOtherPoolsAndInvalidPlansAreRefused(t *testing.T) {
	h := newHost(t, units(2)).open()
	p := h.plan(1, 1, set(0, units(2), units(1)))
	p.Pool = "other"
	h.refused(p)
	p = h.plan(1, 1, set(0, units(2), trimtab.Amount{Value: -1}))
	h.refused(p)
	h.want(units(2))
}

func TestAPlanThatIsOlderThanItsLeaseIsRefused(t *testing.T) {
	h := newHost(t, units(2)).open()
	p := h.plan(1, 1, set(0, units(2), units(1)))
	h.pass(30 * time.Second)
	h.refused(p)
	h.want(units(2))
	if h.Holding().Epoch != 0 {
		t.Error("it was accepted")
	}
}

func TestShrinksComeBeforeGrows(t *testing.T) {
	h := newHost(t, units(2), units(2), units(2)).open()
	var order []string
	for i, k := range h.knobs {
		k.before = func(trimtab.Amount) error { order = append(order, fmt.Sprint("w", i)); return nil }
	}
	h.statuses(h.plan(1, 1, set(0, units(2), units(3)), set(1, units(2), units(1)), set(2, units(2), units(1.5))))
	if want := []string{"w1", "w2", "w0"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

func TestAGrowThatDependsOnAFailedShrinkIsRefused(t *testing.T) {
	h := newHost(t, units(2), units(2), units(2)).open()
	h.knobs[0].before = func(trimtab.Amount) error { return errors.New("no") }
	p := h.plan(1, 1, set(0, units(2), units(1)), set(1, units(2), units(3)), set(2, units(2), units(2.5)))
	p.Capacity = 6.5
	is(t, h.statuses(p), trimtab.Failed, trimtab.Refused, trimtab.Written)
	h.want(units(2), units(2), units(2.5))
}

// It may use what others leave idle, and its part by weight: its max is nothing that it has.
func TestATargetWithoutALimitCountsWithItsLeast(t *testing.T) {
	h := newHost(t, trimtab.Unlimited(), units(1)).open()
	least := h.Holding().Targets[0].Min
	p := h.plan(1, 1, set(1, units(1), units(2)))
	p.Capacity = 2 + least
	is(t, h.statuses(p), trimtab.Written)
	p = h.plan(1, 2, set(1, units(2), units(3)))
	p.Capacity = 2 + least
	is(t, h.statuses(p), trimtab.Refused)
	p = h.plan(1, 3, set(0, trimtab.Unlimited(), units(3)), set(1, units(2), units(3)))
	p.Capacity = 5.9
	is(t, h.statuses(p), trimtab.Written, trimtab.Refused)
}

// The sum is taken after every single write, under random plans, targets that
// fail at random, and any capacity.
func TestTheSumNeverRisesOverTheCapacityNotEvenInBetween(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(r, "targets")
		values := make([]trimtab.Amount, n)
		for i := range values {
			values[i] = units(float64(rapid.IntRange(1, 8).Draw(r, "start")))
		}
		h := newHost(t, values...)
		sum := func() (s float64) {
			for _, k := range h.knobs {
				v, _ := k.Read(t.Context())
				s += v.Value
			}
			return s
		}
		broken := rapid.IntRange(0, n).Draw(r, "broken")
		if broken < n {
			h.knobs[broken].before = func(trimtab.Amount) error { return errors.New("no") }
		}
		h.open()
		for round := range uint64(6) {
			p := h.plan(1, round+1)
			p.Capacity = float64(rapid.IntRange(1, 8*n).Draw(r, "capacity"))
			for i, k := range h.knobs {
				v, _ := k.Read(t.Context())
				p.Actions = append(p.Actions, set(i, v, units(float64(rapid.IntRange(1, 8).Draw(r, "set")))))
			}
			before := sum()
			for i, k := range h.knobs {
				if i != broken {
					k.before = func(trimtab.Amount) error {
						if s := sum(); s > max(before, p.Capacity) {
							r.Errorf("in between the sum is %v, capacity %v", s, p.Capacity)
						}
						return nil
					}
				}
			}
			h.statuses(p)
			if s := sum(); s > max(before, p.Capacity) {
				r.Fatalf("the sum is %v, capacity %v, before %v", s, p.Capacity, before)
			}
		}
		for _, k := range h.knobs {
			k.before = nil
		}
		h.crash()
	})
}

func TestLimitsBoundDepthAndNumberOfCuts(t *testing.T) {
	h := newHost(t, units(5), units(5), units(5), units(5), trimtab.Unlimited())
	h.config.Limits = actuator.Limits{Fall: 0.2, Share: 0.25}
	h.open()
	// A quarter of five targets is one; a rise is not a cut.
	is(t, h.statuses(h.plan(1, 1, set(0, units(5), units(0.1)), set(1, units(5), units(4.9)), set(2, units(5), units(8)))),
		trimtab.Written, trimtab.Refused, trimtab.Written)
	h.want(units(4), units(5), units(8), units(5), trimtab.Unlimited())
	// Unlimited counts as the declared maximum, 8.
	h.pass(actuator.DefaultShareWindow)
	is(t, h.statuses(h.plan(1, 2, set(4, trimtab.Unlimited(), units(1)))), trimtab.Written)
	h.want(units(4), units(5), units(8), units(5), units(6.4))
}

func TestNoHostilePlanCutsDeeperThanTheLimits(t *testing.T) {
	h := newHost(t, units(8), units(8), units(8), units(8), units(8), units(8), units(8), units(8))
	h.config.Limits = actuator.Limits{Fall: 0.2, Share: 0.25}
	h.open()
	sequence := uint64(0)
	rapid.Check(t, func(r *rapid.T) {
		sequence++
		h.pass(actuator.DefaultFallWindow)
		p := h.plan(1, sequence)
		before := make([]float64, len(h.knobs))
		for i, k := range h.knobs {
			v, _ := k.Read(t.Context())
			before[i] = v.Value
			p.Actions = append(p.Actions, set(i, v, units(rapid.Float64Range(0, 20).Draw(r, "set"))))
		}
		h.statuses(p)
		lowered := 0
		for i, k := range h.knobs {
			v, _ := k.Read(t.Context())
			if v.Value < before[i]*0.8-0.01 {
				r.Fatalf("w%d fell from %v to %v", i, before[i], v)
			}
			if v.Value < before[i] {
				lowered++
			}
		}
		if lowered > 2 {
			r.Fatalf("%d of 8 targets were lowered", lowered)
		}
	})
}

func TestAKnobThatDoesNotWorkIsReportedAndHarmsNoOther(t *testing.T) {
	h := newHost(t, units(2), units(2))
	h.knobs[0].Path += "-gone"
	h.open()
	if h.problem(0) == "" || h.problem(1) != "" {
		t.Errorf("problems %q, %q", h.problem(0), h.problem(1))
	}
	is(t, h.statuses(h.plan(1, 1, set(0, units(2), units(1)), set(1, units(2), units(1)))), trimtab.Refused, trimtab.Written)
	// It comes back by itself.
	h.put(h.knobs[0], units(2))
	h.Tick(t.Context())
	if h.problem(0) != "" {
		t.Errorf("problem %q", h.problem(0))
	}
	is(t, h.statuses(h.plan(1, 2, set(0, units(2), units(1)))), trimtab.Written)
}

func TestAConfigurationThatMakesNoSenseIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(c *actuator.Config){
		"no host":   func(c *actuator.Config) { c.Host = "" },
		"no reopen": func(c *actuator.Config) { c.Reopen = nil },
		"twice":     func(c *actuator.Config) { c.Targets[1] = c.Targets[0] },
		"on two hosts": func(c *actuator.Config) {
			c.Targets[1] = c.Targets[0]
			c.Targets[1].Host = "other"
		},
		"bounds": func(c *actuator.Config) { c.Targets[0].Min = 9 },
		"mode":   func(c *actuator.Config) { c.Targets[0].Mode = "" },
		"limits": func(c *actuator.Config) { c.Limits.Fall = 2 },
	} {
		h := newHost(t, units(2), units(2))
		spoil(&h.config)
		if _, err := actuator.Open(t.Context(), h.config); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v, want invalid", name, err)
		}
	}
}

func TestADirectoryThatCannotBeWrittenIsAClearError(t *testing.T) {
	h := newHost(t, units(2))
	h.config.Dir = "/proc/self/nothing"
	if _, err := actuator.Open(t.Context(), h.config); err == nil || !strings.Contains(err.Error(), "/proc/self/nothing") {
		t.Errorf("error %v", err)
	}
}
