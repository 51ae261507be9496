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
func (ks *knobs) probe(ctx context.Context, h *managed) {
	err := h.Knob.Probe(ctx)
	if err == nil && h.Mode == trimtab.Act {
		if err = h.Knob.MayWrite(ctx); errors.Is(err, ErrReadOnly) {
			err = nil // observeBar handles this
		}
	}
	if err == nil && ks.clock.boot() < h.block.abandonedUntil {
		err = errors.New(h.block.abandoned)
	}
	// One problem at a time, so that reports do not alternate: first a failed read, then a change
	// by another program, then the result of the probe.
	switch {
	case !ks.observe(ctx, h) || h.block.foreign:
	case err != nil:
		ks.setProblem(h, err.Error())
	default:
		ks.setProblem(h, h.can.notInForce())
	}
}

// observe reads the knob and records a change. It reports whether the knob could be read.
func (ks *knobs) observe(ctx context.Context, h *managed) bool {
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
			h.falls.remember(h.amount(), ks.clock.boot())
		}
		h.now, h.effective, h.since, h.known = v, effective, ks.clock.wall(), true
		ks.notify()
	}
	h.observeFloor(ctx)
	ks.observeStatus(ctx, h)
	ks.judge(h, before)
	if why := h.can.notInForce(); why != "" && !h.block.foreign {
		ks.setProblem(h, why)
	}
	ks.observeBar(ctx, h)
	return true
}

// effectiveOf returns the value in force of a knob that is set to v; nil: it is v.
func (h *managed) effectiveOf(ctx context.Context, v trimtab.Amount) (*trimtab.Amount, error) {
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
func (ks *knobs) observeBar(ctx context.Context, h *managed) {
	if h.Mode != trimtab.Recommend && !h.can.remote() {
		return
	}
	barred := ""
	if err := h.Knob.MayWrite(ctx); err != nil && (h.Mode == trimtab.Recommend || errors.Is(err, ErrReadOnly)) {
		barred = err.Error()
	}
	if h.block.touched != nil && h.block.touched.Twice {
		barred = h.block.touched.Why
	}
	if barred != h.block.readOnly {
		h.block.readOnly = barred
		ks.notify()
	}
}

// observeStatus records where the knob's instance is in a cluster, and its state.
func (ks *knobs) observeStatus(ctx context.Context, h *managed) {
	if h.can.Status == nil {
		return
	}
	now := h.can.Status(ctx)
	if now != nil && now.Caps && now.Most >= h.Max {
		now = nil // there is more room above the knob than it may have
	}
	if now != nil && now.Caps && ks.config.Shared && h.can.Shared != nil && ks.parent != nil && ks.parent.entry != nil && same(trimtab.Units(now.Most), ks.parent.now) {
		now = nil // the parent's limit is the sum of the shares, and changes with them
	}
	if reflect.DeepEqual(now, h.knobStatus) {
		return
	}
	if !same(now.Cap(h.now), h.knobStatus.Cap(h.now)) {
		h.since = ks.clock.wall()
	}
	h.knobStatus = now
	ks.notify()
}

func (ks *knobs) setProblem(h *managed, problem string) {
	if h.block.problem == problem {
		return
	}
	h.block.problem = problem
	ks.logger.Info("knob", "workload", h.Workload, "resource", h.Resource, "knob", h.Knob.String(), "problem", problem)
	ks.notify()
}

// readAfter is the time after which a knob with a [Mark] is read even if the mark is unchanged.
const readAfter = 10 * time.Second

// unchanged reports whether the knob need not be read now.
func (ks *knobs) unchanged(h *managed) bool {
	if h.can.Mark == nil {
		return false
	}
	now, mark := ks.clock.boot(), h.can.Mark()
	if mark != (Mark{}) && mark == h.fresh.mark && now < h.fresh.again && h.settled(now) {
		return true
	}
	h.fresh.mark, h.fresh.again = mark, saturate(now, readAfter)
	return false
}

// settled reports whether the knob has no change that may still take effect.
func (h *managed) settled(now time.Duration) bool {
	return h.known && h.effective == nil && h.report() == "" && h.block.touched == nil && now >= h.block.abandonedUntil
}
