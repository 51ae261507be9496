package actuator

import (
	"context"
	"errors"
	"os"
	"reflect"
	"time"

	"github.com/trimtab/trimtab"
)

// probe checks whether the knob works, and reads its value.
func (ks *knobs) probe(ctx context.Context, h *held) {
	err := h.Knob.Probe(ctx)
	if err == nil && h.Mode == trimtab.Act {
		if err = h.Knob.MayWrite(ctx); errors.Is(err, ErrBarred) {
			err = nil // observeBar handles this
		}
	}
	if err == nil && ks.clock.boot() < h.hopelessUntil {
		err = errors.New(h.hopeless)
	}
	// One problem at a time, so that reports do not alternate: first a failed read, then a change
	// by another program, then the result of the probe.
	switch {
	case !ks.observe(ctx, h) || h.foreign:
	case err != nil:
		ks.setProblem(h, err.Error())
	default:
		ks.setProblem(h, h.can.notInForce())
	}
}

// observe reads the knob and records a change. It reports whether the knob could be read.
func (ks *knobs) observe(ctx context.Context, h *held) bool {
	v, err := h.Knob.Read(ctx)
	h.gone = errors.Is(err, os.ErrNotExist)
	if err == nil {
		err = v.Validate()
	}
	var effective *trimtab.Amount
	if err == nil {
		effective, err = h.effectiveOf(ctx, v)
	}
	if err != nil {
		ks.setProblem(h, err.Error())
		return false
	}
	before := h.now
	if !h.known || !same(v, h.now) || (effective == nil) != (h.effective == nil) || effective != nil && !same(*effective, *h.effective) {
		if h.known && !h.moves() { // values of the fast loop do not count as peaks
			h.remember(h.amount(), ks.clock.boot())
		}
		h.now, h.effective, h.since, h.known = v, effective, ks.clock.wall(), true
		ks.notify()
	}
	h.observeFloor(ctx)
	ks.observeStanding(ctx, h)
	ks.judge(h, before)
	if why := h.can.notInForce(); why != "" && !h.foreign {
		ks.setProblem(h, why)
	}
	ks.observeBar(ctx, h)
	return true
}

// effectiveOf returns the value in force of a knob that is set to v; nil: it is v.
func (h *held) effectiveOf(ctx context.Context, v trimtab.Amount) (*trimtab.Amount, error) {
	if h.can.Effective == nil {
		return nil, nil
	}
	e, err := h.can.Effective(ctx)
	if err == nil {
		err = e.Validate()
	}
	if err != nil || same(e, v) {
		return nil, err
	}
	return &e, nil
}

// observeBar records whether a plan could be applied to the knob. It is for knobs in mode
// recommend, and for remote ones.
func (ks *knobs) observeBar(ctx context.Context, h *held) {
	if h.Mode != trimtab.Recommend && !h.can.remote() {
		return
	}
	barred := ""
	if err := h.Knob.MayWrite(ctx); err != nil && (h.Mode == trimtab.Recommend || errors.Is(err, ErrBarred)) {
		barred = err.Error()
	}
	if h.touched != nil && h.touched.Twice {
		barred = h.touched.Why
	}
	if barred != h.barred {
		h.barred = barred
		ks.notify()
	}
}

// observeStanding records where the knob's instance is in a cluster, and its state.
func (ks *knobs) observeStanding(ctx context.Context, h *held) {
	if h.can.Standing == nil {
		return
	}
	now := h.can.Standing(ctx)
	if now != nil && now.Caps && now.Most >= h.Max {
		now = nil // there is more room above the knob than it may have
	}
	if now != nil && now.Caps && ks.config.Shared && h.can.Shared != nil && ks.parent != nil && ks.parent.entry != nil && same(trimtab.Units(now.Most), ks.parent.now) {
		now = nil // the parent's limit is the sum of the shares, and changes with them
	}
	if reflect.DeepEqual(now, h.standing) {
		return
	}
	if !same(now.Cap(h.now), h.standing.Cap(h.now)) {
		h.since = ks.clock.wall()
	}
	h.standing = now
	ks.notify()
}

func (ks *knobs) setProblem(h *held, problem string) {
	if h.problem == problem {
		return
	}
	h.problem = problem
	ks.logger.Info("knob", "workload", h.Workload, "resource", h.Resource, "knob", h.Knob.String(), "problem", problem)
	ks.notify()
}

// readAfter is the time after which a knob with a [Mark] is read even if the mark is unchanged.
const readAfter = 10 * time.Second

// unchanged reports whether the knob need not be read now.
func (ks *knobs) unchanged(h *held) bool {
	if h.can.Mark == nil {
		return false
	}
	now, mark := ks.clock.boot(), h.can.Mark()
	if mark != (Mark{}) && mark == h.mark && now < h.lookAgain && h.settled(now) {
		return true
	}
	h.mark, h.lookAgain = mark, saturate(now, readAfter)
	return false
}

// settled reports whether the knob has no change that may still take effect.
func (h *held) settled(now time.Duration) bool {
	return h.known && h.effective == nil && h.report() == "" && h.touched == nil && now >= h.hopelessUntil
}
