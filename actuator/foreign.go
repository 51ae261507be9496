package actuator

import (
	"fmt"
	"os"

	"github.com/trimtab/trimtab"
)

// judge notes whether somebody else turned the knob, which had before until it
// was read now.
func (a *Actuator) judge(h *held, before trimtab.Amount) {
	why := ""
	switch {
	case h.entry == nil:
	case h.entry.free(h.now):
	case !h.entry.ours(h.now) && !same(h.now, h.entry.Baseline):
		why = fmt.Sprintf("changed by somebody else to %v, trimtab wrote %v: resume takes it over", h.now, h.entry.Wrote)
	case a.undone(h, before):
		why = fmt.Sprintf("put back by somebody else to its baseline %v, trimtab wrote %v (%s): resume goes on from there",
			h.now, h.entry.last(), usualSuspect(h.Knob))
	}
	if why != "" || h.foreign {
		a.setProblem(h, why)
	}
	h.foreign = why != ""
}

// usualSuspect says who does such a thing.
func usualSuspect(k Knob) string {
	if _, ok := k.(Remote); ok {
		return "a person, a GitOps tool or another controller"
	}
	return "systemd does so to the groups of its units at daemon-reload"
}

// undone reports whether somebody else has set the baseline while the lease
// holds: it is there instead of a value of trimtab's that was seen before. A
// group that was removed and made anew begins with it, which is nobody's doing.
func (a *Actuator) undone(h *held, before trimtab.Amount) bool {
	e := h.entry
	if !same(h.now, e.Baseline) || same(h.now, e.last()) || a.lease.left(a.clock.id, a.clock.boot()) == 0 {
		return false
	}
	if !h.foreign && (!e.ours(before) || same(before, h.now)) {
		return false
	}
	if _, ok := h.Knob.(Remote); ok {
		return true // an instance that was made anew has no entry
	}
	now := whereIs(h.Knob)
	return h.written != nil && now != nil && os.SameFile(h.written, now)
}

// whereIs returns what a knob turns, to be known again; nil where that cannot be
// told.
func whereIs(k Knob) os.FileInfo {
	p, ok := k.(Placed)
	if !ok {
		return nil
	}
	place, err := p.Place()
	if err != nil {
		return nil
	}
	info, err := os.Stat(place)
	if err != nil {
		return nil
	}
	return info
}
