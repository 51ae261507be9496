package actuator

import (
	"context"
	"errors"
	"os"
	"reflect"
	"time"

	"github.com/trimtab/trimtab"
)

// probe looks whether the knob works and what it holds.
func (ks *knobs) probe(ctx context.Context, h *held) {
	err := h.Knob.Probe(ctx)
	if err == nil && h.Mode == trimtab.Act {
		if err = h.Knob.MayWrite(ctx); errors.Is(err, ErrBarred) {
			err = nil // see observeBar
		}
	}
	if err == nil && ks.clock.boot() < h.hopelessUntil {
		err = errors.New(h.hopeless)
	}
	// One problem at a time, so that it is told once and not in turns: what
	// cannot be read, then who else turned it, then what the probe found.
	switch {
	case !ks.observe(ctx, h) || h.foreign:
	case err != nil:
		ks.setProblem(h, err.Error())
	default:
		ks.setProblem(h, h.can.notInForce())
	}
}

// observe reads the knob and notes a change. It reports whether the knob
// could be read.
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
		if h.known && !h.moves() { // loans are outside the memory of falls
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

// effectiveOf returns what is in force of a knob that is set to v; nil: v is.
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

// observeBar notes whether a plan of the knob could be applied: of a recommending one,
// and of one that others may come to turn.
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

// observeStanding notes where the knob's instance is, and how it stands.
func (ks *knobs) observeStanding(ctx context.Context, h *held) {
	if h.can.Standing == nil {
		return
	}
	now := h.can.Standing(ctx)
	if now != nil && now.Caps && now.Most >= h.Max {
		now = nil // it has more room above it than it may have
	}
	if now != nil && now.Caps && ks.config.Shared && h.can.Shared != nil && ks.parent != nil && ks.parent.entry != nil && same(trimtab.Units(now.Most), ks.parent.now) {
		now = nil // the limit is the sum of the shares, and goes with them
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

// readAfter is after how long a knob that has a [Mark] is read although nothing changed.
const readAfter = 10 * time.Second

// unchanged reports whether a knob need not be read now.
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

// settled reports whether nothing is awaited of a knob.
func (h *held) settled(now time.Duration) bool {
	return h.known && h.effective == nil && h.report() == "" && h.touched == nil && now >= h.hopelessUntil
}
