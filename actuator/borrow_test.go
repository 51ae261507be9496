package actuator_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// borrow is a plan with a lease of 30 s, of which what is above a baseline holds for 10 s.
func (h *host) borrow(sequence uint64, actions ...trimtab.Action) *trimtab.Plan {
	p := h.plan(1, sequence, actions...)
	p.BorrowLease = 10
	return p
}

func TestWhatIsAboveItsBaselineGoesBackWhenOthersLendItNoLonger(t *testing.T) {
	h := newHost(t, units(2), units(2), trimtab.Unlimited()).open()
	h.statuses(h.borrow(1, set(0, units(2), units(3)), set(1, units(2), units(1)), set(2, trimtab.Unlimited(), units(4))))
	h.pass(10*time.Second - time.Millisecond)
	h.Tick(t.Context())
	h.want(units(3), units(1), units(4))
	h.pass(time.Millisecond)
	h.Tick(t.Context())
	h.want(units(2), units(1), units(4))
	for i := range 3 {
		if why := h.problem(i); why != "" {
			t.Errorf("w%d: %s", i, why)
		}
	}
	h.pass(20 * time.Second)
	h.Tick(t.Context())
	h.want(units(2), units(2), trimtab.Unlimited())
}

func TestTheNextPlanRenewsWhatIsBorrowed(t *testing.T) {
	h := newHost(t, units(2)).open()
	h.statuses(h.borrow(1, set(0, units(2), units(3))))
	for sequence := uint64(2); sequence < 6; sequence++ {
		h.pass(9 * time.Second)
		h.statuses(h.borrow(sequence))
		h.Tick(t.Context())
		h.want(units(3))
	}
	h.statuses(h.plan(1, 6)) // nobody needs it back: it holds as long as the lease
	h.pass(29 * time.Second)
	h.Tick(t.Context())
	h.want(units(3))
}

func TestWhatIsBorrowedByALatePlanGoesBackInTime(t *testing.T) {
	h := newHost(t, units(2), units(2)).open()
	late := h.borrow(1, set(0, units(2), units(3)), set(1, units(2), units(1)))
	h.pass(8 * time.Second)
	is(t, h.statuses(late), trimtab.Written, trimtab.Written)
	h.pass(2 * time.Second)
	h.Tick(t.Context())
	h.want(units(2), units(1))

	late = h.borrow(2, set(0, units(2), units(3)), set(1, units(1), units(0.5)))
	h.pass(10 * time.Second)
	is(t, h.statuses(late), trimtab.Refused, trimtab.Written)
	h.Tick(t.Context())
	h.want(units(2), units(0.5))
}

func TestAPauseHoldsWhatIsBorrowed(t *testing.T) {
	h := newHost(t, units(2)).open()
	h.statuses(h.borrow(1, set(0, units(2), units(3))))
	if err := h.Command(t.Context(), &trimtab.Command{Pool: "p", Verb: trimtab.Pause, Time: h.wall, By: "a test"}); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		h.pass(10 * time.Second)
		h.Tick(t.Context())
	}
	h.want(units(3))
}

func TestWhatIsBorrowedGoesBackAtTheStartOfAnActuator(t *testing.T) {
	h := newHost(t, units(2), units(2)).open()
	h.statuses(h.borrow(1, set(0, units(2), units(3)), set(1, units(2), units(1))))
	h.crash()
	h.pass(10 * time.Second)
	h.open()
	h.want(units(2), units(1))
}

func TestTheWatchdogGivesBackWhatIsBorrowedAndLeavesTheRest(t *testing.T) {
	t.Parallel()
	for _, stopped := range []bool{false, true} {
		h := newHost(t, units(2), units(2))
		h.config = victim(h.dir)
		h.config.Targets = h.config.Targets[:2]
		a, err := actuator.Open(t.Context(), h.config)
		if err != nil {
			t.Fatal(err)
		}
		h.endProcesses()
		p := h.plan(1, 1, set(0, units(2), units(3)), set(1, units(2), units(1)))
		p.Time, p.Lease, p.BorrowLease = time.Now(), 3600, 0.5
		h.Actuator = a
		is(t, h.statuses(p), trimtab.Written, trimtab.Written)
		if !stopped { // else it does nothing more: nobody calls Tick
			h.crash()
		}
		eventually(t, func() error {
			v, err := h.knobs[0].Read(t.Context())
			if err != nil || v != units(2) {
				return fmt.Errorf("w0 holds %v, %v", v, err)
			}
			return nil
		})
		h.want(units(2), units(1))
		if stopped {
			a.Tick(t.Context())
			if why := h.problem(0); why != "" {
				t.Errorf("the actuator says of what its watchdog gave back: %s", why)
			}
			h.crash()
		}
	}
}
