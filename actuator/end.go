package actuator

import (
	"context"
	"errors"
	"slices"

	"github.com/trimtab/trimtab"
)

// Close restores the baselines, also those of a pause, unless KeepOnStop, lets
// go of the directory and closes the knobs. Calling it again does nothing.
func (a *Actuator) Close(ctx context.Context) error {
	keep := a.config.KeepOnStop
	return a.end(ctx, func(trimtab.KnobID) bool { return keep }, keep)
}

// HandOver is Close for an actuator that is opened on the same directory right afterwards.
// What keeps names stays as it is set, with its journal and its lease, and above tells whether
// the group above the pool's does; all others get their baselines back.
func (a *Actuator) HandOver(ctx context.Context, keeps func(trimtab.KnobID) bool, above bool) error {
	return a.end(ctx, keeps, above)
}

func (a *Actuator) end(ctx context.Context, keeps func(trimtab.KnobID) bool, above bool) error {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil
	}
	a.closed = true
	ending := slices.DeleteFunc(slices.Clone(a.restorable()), func(h *held) bool {
		if h == a.parent {
			return above
		}
		return keeps(h.KnobID)
	})
	err := a.restoreToTheEnd(ctx, ending)
	left := a.holds()
	err = errors.Join(err, a.host.close(!left), a.letGo(), a.journal.Close(), a.presence.Close(), a.lock.Close())
	for _, h := range a.knobs {
		err = errors.Join(err, h.Knob.Close())
	}
	if p := a.parent; p != nil {
		err = errors.Join(err, p.Knob.Close())
	}
	a.mu.Unlock()
	// Last, so that it covers all that came before.
	a.watchdog.release(len(ending) < len(a.restorable()))
	return err
}
