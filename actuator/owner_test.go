package actuator_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// beside is another process on the knobs of h, with a storage of its own.
func (h *host) beside() *host {
	other := *h
	other.Actuator = nil
	other.config.Dir = filepath.Join(h.dir, "journal of another")
	return &other
}

func TestOfTwoProcessesOnTheSameKnobsTheSecondOnlyRecommends(t *testing.T) {
	first := newHost(t, units(2), units(2)).open()
	first.statuses(first.plan(1, 1, set(0, units(2), units(1))))
	second := first.beside().open()
	for i := range 2 {
		if why := second.problem(i); !strings.Contains(why, "owned by process") || !strings.Contains(why, "since 2026-11-20 12:00:00 UTC") ||
			!strings.Contains(why, first.dir) {
			t.Errorf("problem %q", why)
		}
	}
	is(t, second.statuses(second.plan(1, 1, set(0, units(1), units(3)), set(1, units(2), units(3)))), trimtab.Refused, trimtab.Refused)
	first.want(units(1), units(2))
	if first.problem(0) != "" || first.problem(1) != "" {
		t.Errorf("problems of the owner %q, %q", first.problem(0), first.problem(1))
	}
	// A graceful end hands over: the baseline is what stands there.
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	second.Tick(t.Context())
	is(t, second.statuses(second.plan(1, 2, set(0, units(2), units(3)))), trimtab.Written)
}

func TestTheBaselineOfAnOwnerThatDiedIsTakenOver(t *testing.T) {
	first := newHost(t, units(2), trimtab.Unlimited()).open()
	first.statuses(first.plan(1, 1, set(0, units(2), units(1)), set(1, trimtab.Unlimited(), units(1))))
	second := first.beside().open()
	first.crash()
	second.Tick(t.Context())
	// What the dead one lowered was on its lease, and the newcomer has none.
	first.want(units(2), trimtab.Unlimited())
	is(t, second.statuses(second.plan(1, 1, set(0, units(2), units(1.5)), set(1, trimtab.Unlimited(), units(3)))), trimtab.Written, trimtab.Written)
	// Nor does what the dead one left behind put anything back under its feet.
	r, err := actuator.Restore(t.Context(), first.config.Dir, reopen)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range r.Items {
		if i.Status != trimtab.Refused || !strings.Contains(i.Reason, "has its baseline") {
			t.Errorf("restored: %+v", i)
		}
	}
	first.want(units(1.5), units(3))
	first.open() // it comes back, and waits
	if why := first.problem(0); !strings.Contains(why, "owned by process") {
		t.Errorf("problem %q", why)
	}
	if err := second.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	first.want(units(2), trimtab.Unlimited())
	first.Tick(t.Context())
	if why := first.problem(0); why != "" {
		t.Errorf("problem %q", why)
	}
}

func TestABaselineThatIsTakenOverWhileOtherKnobsAreOnLeaseStaysTheBaseline(t *testing.T) {
	first := newHost(t, units(2), units(2))
	first.config.Targets = first.config.Targets[:1]
	first.open().statuses(first.plan(1, 1, set(0, units(2), units(1))))
	second := first.beside()
	second.config.Targets = append(second.config.Targets[:1:1], actuator.Target{
		KnobID: trimtab.KnobID{Workload: "w1", Resource: "cpu"}, Knob: first.knobs[1], Min: 0.1, Max: 8, Mode: trimtab.Act})
	second.open().statuses(second.plan(1, 1, set(1, units(2), units(3))))
	first.crash()
	second.Tick(t.Context())
	if held := second.Holding().Targets[0]; held.Problem != "" || held.Now != units(1) || held.Baseline != units(2) {
		t.Errorf("held %+v", held)
	}
	is(t, second.statuses(second.plan(1, 2, set(0, units(1), units(0.5)))), trimtab.Written)
	// And over a crash of the newcomer, with another one yet.
	second.crash()
	third := second.beside()
	third.config.Dir += ", the third"
	third.open()
	third.want(units(2), units(2))
}

func TestTheOwnersOwnRestartFindsItsBaselines(t *testing.T) {
	h := newHost(t, units(2)).open()
	h.statuses(h.plan(1, 1, set(0, units(2), units(1))))
	h.crash().open()
	if held := h.Holding().Targets[0]; held.Problem != "" || held.Baseline != units(2) {
		t.Errorf("held %+v", held)
	}
	h.pass(time.Minute)
	h.Tick(t.Context())
	h.want(units(2))
}

func TestARecommendingTargetIsOwnedOnlyWhileAPlanIsApplied(t *testing.T) {
	first := newHost(t, units(2))
	first.config.Targets[0].Mode = trimtab.Recommend
	first.open()
	second := first.beside()
	second.config.Targets = []actuator.Target{first.config.Targets[0]}
	second.config.Targets[0].Mode = trimtab.Act
	second.open()
	if why := second.problem(0); why != "" {
		t.Errorf("problem %q", why)
	}
	applied := func() trimtab.Status {
		first.pass(time.Second)
		first.asked("1-9")
		p := first.plan(1, uint64(first.wall.Unix()), set(0, first.Holding().Targets[0].Now, units(1)))
		p.Applies = "1-9"
		return first.statuses(p)[0]
	}
	if got := applied(); got != trimtab.Refused {
		t.Errorf("%s, and another process owns it", got)
	}
	if err := second.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := applied(); got != trimtab.Written {
		t.Errorf("%s, and nobody owns it any more", got)
	}
	third := second.beside().open()
	if why := third.problem(0); !strings.Contains(why, "owned by process") {
		t.Errorf("problem %q", why)
	}
	first.pass(time.Minute)
	first.Tick(t.Context())
	third.Tick(t.Context())
	if why := third.problem(0); why != "" {
		t.Errorf("problem %q after the applied plan ran out", why)
	}
}

func TestALockFileThatSomebodyRemovedIsTakenAgain(t *testing.T) {
	first := newHost(t, units(2)).open()
	if err := os.RemoveAll(first.config.LockDir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(first.config.LockDir, 0o700); err != nil {
		t.Fatal(err)
	}
	first.Tick(t.Context())
	second := first.beside().open()
	if first.problem(0) != "" || second.problem(0) == "" {
		t.Errorf("problems %q, %q", first.problem(0), second.problem(0))
	}
}

func TestWithoutALockNothingIsWritten(t *testing.T) {
	h := newHost(t, units(2))
	h.config.LockDir = "/proc/self/nothing"
	h.open()
	if why := h.problem(0); !strings.Contains(why, "cannot be locked") {
		t.Errorf("problem %q", why)
	}
	is(t, h.statuses(h.plan(1, 1, set(0, units(2), units(1)))), trimtab.Refused)
}
