package actuator_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// pacedKnob is a knob of a server that takes two writes a second.
type pacedKnob struct{ *slowKnob }

func (k *pacedKnob) Traits() actuator.Traits {
	t := k.fileKnob.Traits()
	t.Pace, t.Effective, t.Hopeless = 2, k.Read, func(context.Context) string { return "" }
	return t
}

// newPacedHost has a host of n knobs at 1 that a server turns, with room for all at 8.
func newPacedHost(t *testing.T, n int) *host {
	values := make([]trimtab.Amount, n)
	for i := range values {
		values[i] = units(1)
	}
	h := newHost(t, values...)
	h.config.JournalSize = 1 << 20
	for i := range h.config.Targets {
		h.config.Targets[i].Knob = &pacedKnob{&slowKnob{fileKnob: h.knobs[i]}}
	}
	return h.open()
}

func written(o *trimtab.Outcome) (names []string) {
	for _, r := range o.Results {
		if r.Status == trimtab.Written {
			names = append(names, r.Workload)
		}
	}
	return names
}

func TestAStepWritesOnlyWhatFitsInASixthOfTheLeaseTheMostUrgentFirst(t *testing.T) {
	h := newPacedHost(t, 30)
	var moves []trimtab.Action
	for i := range 30 {
		moves = append(moves, set(i, units(1), units(2)))
	}
	short := 4.0
	moves[17].Why.Demand = &short
	p := h.plan(1, 1, moves...)
	p.Lease, p.Capacity = 60, 1000
	o := h.Handle(t.Context(), p)
	done := written(o)
	if len(done) != 20 || !slices.Contains(done, "w17") {
		t.Fatalf("a plan with a lease of 60 s made %d writes at 2 a second, want the 20 of 10 s, w17 among them: %q", len(done), done)
	}
	for _, r := range o.Results {
		if r.Status != trimtab.Written && !strings.Contains(r.Reason, "its turn has not come") {
			t.Errorf("%s is %s: %q", r.Workload, r.Status, r.Reason)
		}
	}
	for i, k := range h.knobs {
		if wrote := k.writes > 0; wrote != slices.Contains(done, fmt.Sprintf("w%d", i)) {
			t.Errorf("w%d has %d writes, and was told %v", i, k.writes, !wrote)
		}
	}
	// The next plan, 5 s later, has as long as there is between plans.
	h.pass(5 * time.Second)
	var rest []trimtab.Action
	for i := range 30 {
		if !slices.Contains(done, fmt.Sprintf("w%d", i)) {
			rest = append(rest, set(i, units(1), units(2)))
		}
	}
	p = h.plan(1, 2, rest...)
	p.Lease, p.Capacity = 60, 1000
	if o = h.Handle(t.Context(), p); len(written(o)) != 10 {
		t.Errorf("the second plan made %d writes, want the 10 of 5 s: %+v", len(written(o)), o.Refused)
	}
}

func TestWhatAPersonAppliesAndWouldOutlastTheLeaseIsNotBegun(t *testing.T) {
	h := newPacedHost(t, 70)
	h.asked("3-17")
	var moves []trimtab.Action
	for i := range 70 {
		moves = append(moves, set(i, units(1), units(2)))
	}
	p := h.plan(1, 1, moves...)
	p.Lease, p.Capacity, p.Applies = 60, 1000, "3-17"
	o := h.Handle(t.Context(), p)
	for _, r := range o.Results {
		if r.Status != trimtab.Refused || !strings.Contains(r.Reason, "these 70 would outlast the lease") {
			t.Fatalf("%s is %s: %q", r.Workload, r.Status, r.Reason)
		}
	}
	if len(o.Results) != 70 {
		t.Errorf("%d results: %q", len(o.Results), o.Refused)
	}
}

func TestARestoreGoesOnInPartsWhatWasLoweredMostFirstAndTheSumStaysUnderTheLarger(t *testing.T) {
	h := newPacedHost(t, 30)
	var moves []trimtab.Action
	for i := range 20 {
		to := 0.8
		if i == 13 {
			to = 0.2
		}
		moves = append(moves, set(i, units(1), units(to)))
	}
	p := h.plan(1, 1, moves...)
	p.Lease, p.Capacity = 60, 1000
	if n := len(written(h.Handle(t.Context(), p))); n != 20 {
		t.Fatalf("%d of 20 were lowered", n)
	}
	h.pass(61 * time.Second)
	h.Tick(t.Context()) // a part of 4 s
	back := func() (n int) {
		for i, k := range h.knobs[:20] {
			if v, _ := k.Read(t.Context()); v == units(1) {
				n++
			} else if i == 13 {
				t.Error("w13, which was lowered most, has to wait")
			}
		}
		return n
	}
	if n := back(); n != 8 {
		t.Errorf("%d of 20 are back after the first part, want the 8 of 4 s", n)
	}
	h.Tick(t.Context())
	h.Tick(t.Context())
	if n := back(); n != 20 {
		t.Errorf("%d of 20 are back after three parts", n)
	}
}

func TestAStopPutsEveryBaselineBackWithinItsCloseTime(t *testing.T) {
	h := newPacedHost(t, 20)
	if got := h.CloseTime(); got != 10*time.Second {
		t.Errorf("with nothing to put back a stop may take %v", got)
	}
	var moves []trimtab.Action
	for i := range 20 {
		moves = append(moves, set(i, units(1), units(0.5)))
	}
	p := h.plan(1, 1, moves...)
	p.Lease, p.Capacity = 60, 1000
	h.Handle(t.Context(), p)
	if got := h.CloseTime(); got != 20*time.Second {
		t.Errorf("20 baselines at 2 a second may take %v, want 20 s", got)
	}
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, k := range h.knobs {
		if v, _ := k.Read(t.Context()); v != units(1) {
			t.Errorf("w%d has %v after the stop", i, v)
		}
	}
}

func TestAStopThatRunsOutOfTimeSaysHowManyBaselinesAreLeft(t *testing.T) {
	h := newPacedHost(t, 20)
	var moves []trimtab.Action
	for i := range 20 {
		moves = append(moves, set(i, units(1), units(0.5)))
	}
	p := h.plan(1, 1, moves...)
	p.Lease, p.Capacity = 60, 1000
	h.Handle(t.Context(), p)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wrote := 0
	for _, k := range h.knobs {
		k.before = func(trimtab.Amount) error {
			if wrote++; wrote == 5 {
				cancel()
			}
			return nil
		}
	}
	err := h.Close(ctx)
	if err == nil || !strings.Contains(err.Error(), "15 baselines are left in the journal") {
		t.Errorf("the stop says %v", err)
	}
	h.open() // and the next start goes on
	for range 3 {
		h.pass(61 * time.Second)
		h.Tick(t.Context())
	}
	for i, k := range h.knobs {
		if v, _ := k.Read(t.Context()); v != units(1) {
			t.Errorf("w%d has %v after the next start", i, v)
		}
	}
}
