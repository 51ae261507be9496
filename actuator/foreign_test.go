package actuator_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// sharedKnob is a knob that others turn, too.
type sharedKnob struct{ *fileKnob }

func (k sharedKnob) Traits() actuator.Traits {
	t := k.fileKnob.Traits()
	t.Effective, t.Hopeless = k.Read, func(context.Context) string { return "" }
	return t
}

// newSharedHost is a host with one such knob at 2, which leaves it to others for 10 minutes.
func newSharedHost(t *testing.T) *host {
	h := newHost(t, units(2))
	h.config.Targets[0].Knob = sharedKnob{h.knobs[0]}
	h.config.ForeignHold = 10 * time.Minute
	return h.open()
}

// later lets time pass while plans renew the lease.
func (h *host) later(d time.Duration, sequence *uint64) {
	h.t.Helper()
	for end := h.boot + d; h.boot < end; {
		h.pass(min(20*time.Second, end-h.boot))
		*sequence++
		h.Handle(h.t.Context(), h.plan(1, *sequence))
		h.Tick(h.t.Context())
	}
}

func TestWhatSomebodyElseSetIsLeftAloneThenIsTheBaselineAndASecondTimeWithinTheHourIsOnlyRecommended(t *testing.T) {
	h := newSharedHost(t)
	sequence := uint64(1)
	next := func(from, to float64) trimtab.Status {
		sequence++
		return h.statuses(h.plan(1, sequence, set(0, units(from), units(to))))[0]
	}
	if got := next(2, 3); got != trimtab.Written {
		t.Fatalf("status %v", got)
	}
	h.put(h.knobs[0], units(5)) // a person
	h.Tick(t.Context())
	for range 29 { // to within the last of 10 minutes
		if got := next(5, 4); got != trimtab.Refused {
			t.Fatalf("status %v, %v after the change", got, h.problem(0))
		}
		h.later(20*time.Second, &sequence)
	}
	if why := h.problem(0); !strings.Contains(why, "changed by somebody else to 5") || !strings.Contains(why, "taken over at") {
		t.Errorf("problem %q", why)
	}
	h.later(time.Minute, &sequence)
	if k := h.Holding().Targets[0]; k.Problem != "" || k.Baseline != units(5) || k.ReadOnly != "" {
		t.Errorf("after the hold: %+v", k)
	}
	if got := next(5, 4); got != trimtab.Written {
		t.Errorf("status %v after the hold", got)
	}
	h.put(h.knobs[0], units(6)) // again
	h.Tick(t.Context())
	if k := h.Holding().Targets[0]; k.Problem != "" || !strings.Contains(k.ReadOnly, "twice within 1h") {
		t.Errorf("the second time: %+v", k)
	}
	h.later(2*time.Hour, &sequence)
	if got := next(6, 4); got != trimtab.Refused {
		t.Errorf("status %v, hours later", got)
	}
	if h.knobs[0].writes != 2 {
		t.Errorf("%d writes", h.knobs[0].writes)
	}
	if err := h.Command(t.Context(), &trimtab.Command{Pool: "p", Verb: trimtab.Resume, Time: h.wall}); err != nil {
		t.Fatal(err)
	}
	h.Tick(t.Context())
	if got := next(6, 4); got != trimtab.Written {
		t.Errorf("status %v after a resume: %+v", got, h.Holding().Targets[0])
	}
}

// The lease that ends while a value is left alone does not end that, nor does a restart.
func TestNeitherARestartNorTheEndOfALeaseMakesAForeignValueOurs(t *testing.T) {
	for what, end := range map[string]func(*host){
		"restart":         func(h *host) { h.crash().open() },
		"end of lease":    func(h *host) { h.pass(time.Minute); h.Tick(h.t.Context()) },
		"both":            func(h *host) { h.crash().pass(time.Minute); h.open() },
		"set back, crash": func(h *host) { h.put(h.knobs[0], units(2)); h.Tick(h.t.Context()); h.crash().open() },
	} {
		t.Run(what, func(t *testing.T) {
			h := newSharedHost(t)
			h.statuses(h.plan(1, 1, set(0, units(2), units(3))))
			h.put(h.knobs[0], units(5))
			h.Tick(t.Context())
			end(h)
			found, err := h.knobs[0].Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := h.statuses(h.plan(1, 2, set(0, found, units(4)))); got[0] != trimtab.Refused {
				t.Errorf("status %v: %+v", got, h.Holding().Targets[0])
			}
		})
	}
}

func TestTwoForeignChangesThatAreMoreThanAnHourApartAreEachTheFirst(t *testing.T) {
	h := newSharedHost(t)
	sequence := uint64(1)
	h.statuses(h.plan(1, 1, set(0, units(2), units(3))))
	h.put(h.knobs[0], units(5))
	h.Tick(t.Context())
	h.later(61*time.Minute, &sequence)
	sequence++
	if got := h.statuses(h.plan(1, sequence, set(0, units(5), units(4)))); got[0] != trimtab.Written {
		t.Fatalf("status %v", got)
	}
	h.put(h.knobs[0], units(6))
	h.Tick(t.Context())
	if k := h.Holding().Targets[0]; k.ReadOnly != "" || !strings.Contains(k.Problem, "changed by somebody else to 6") {
		t.Errorf("%+v", k)
	}
}

// versionedKnob counts changes, as a server does.
type versionedKnob struct {
	sharedKnob
	version *string
}

func (k versionedKnob) Traits() actuator.Traits {
	t := k.sharedKnob.Traits()
	t.Version = func() string { return *k.version }
	return t
}

func TestAValueThatWasChangedAndPutBackWhileAPlanIsCarriedOutGetsNoWrite(t *testing.T) {
	version := "1"
	h := newHost(t, units(2), units(4))
	h.config.Targets[0].Knob = versionedKnob{sharedKnob{h.knobs[0]}, &version}
	h.open()
	h.knobs[1].before = func(trimtab.Amount) error { version = "2"; return nil } // the shrink of another goes first
	if got := h.statuses(h.plan(1, 1, set(0, units(2), units(3)), set(1, units(4), units(3)))); got[0] != trimtab.Refused || got[1] != trimtab.Written {
		t.Errorf("statuses %v", got)
	}
	h.want(units(2), units(3))
}
