package actuator

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// judge notes whether somebody else turned the knob, which had before until it
// was read now.
func (ks *knobs) judge(h *held, before trimtab.Amount) {
	why := ""
	switch {
	case h.entry == nil:
	case h.entry.free(h.now):
	case !h.entry.ours(h.now) && !same(h.now, h.entry.Baseline):
		why = fmt.Sprintf("changed by somebody else to %v, trimtab wrote %v: resume takes it over", h.now, h.entry.Wrote)
	case ks.undone(h, before):
		why = fmt.Sprintf("put back by somebody else to its baseline %v, trimtab wrote %v (%s): resume goes on from there",
			h.now, h.entry.last(), usualSuspect(h))
	}
	if h.can.remote() && ks.config.ForeignHold > 0 {
		why = ks.leaveTo(h, why)
	}
	if why != "" || h.foreign {
		ks.setProblem(h, why)
	}
	h.foreign = why != ""
}

// touched is that somebody else turned a knob whose control loop others share. It is
// journaled: a restart must not end the time for which the knob is left alone.
type touched struct {
	trimtab.KnobID
	// InstanceID differs from that of earlier instances of the same name.
	InstanceID uint64 `json:"instance_id,omitempty"`
	// At is when Found was found.
	At    time.Time      `json:"at"`
	Found trimtab.Amount `json:"found"`
	Why   string         `json:"why"`
	// Over tells that Found was taken over as the baseline. Twice tells that it was the
	// second time within twiceWithin: the knob is only recommended until a resume.
	Over  bool `json:"over,omitempty"`
	Twice bool `json:"twice,omitempty"`
}

// twiceWithin is how soon after the first time the second one says that somebody else
// means to keep turning the knob.
const twiceWithin = time.Hour

func (t *touched) journalKey() string { return keyIn(touchedPrefix, t.KnobID) }

// leaveTo leaves a knob to whoever else turned it, why says how, and returns why it is
// left alone now, or "".
func (ks *knobs) leaveTo(h *held, why string) string {
	now, t := ks.clock.wall(), h.touched
	if t != nil && now.Before(t.At) {
		t.At = now // a clock that was ahead must not make it last
	}
	switch again := why != "" && (t == nil || t.Over || !same(t.Found, h.now)); {
	case again && t != nil && now.Sub(t.At) < twiceWithin:
		next := &touched{KnobID: h.KnobID, InstanceID: h.id, At: now, Found: h.now, Over: true, Twice: true,
			Why: fmt.Sprintf("%s has changed it twice within %v, to %v last: only recommended until a resume", usualSuspect(h), twiceWithin, h.now)}
		if !ks.takeOver(h, next) {
			return why
		}
		return ""
	case again:
		next := &touched{KnobID: h.KnobID, InstanceID: h.id, At: now, Found: h.now, Why: fmt.Sprintf("%s, or it is taken over at %s", why, now.Add(ks.config.ForeignHold).UTC().Format("15:04:05 UTC"))}
		ks.note(put(next.journalKey(), next))
		h.touched = next
		return next.Why
	case t == nil:
		return why
	case !t.Over && now.Sub(t.At) < ks.config.ForeignHold:
		return t.Why
	case !t.Over:
		next := *t
		if next.Over = true; !ks.takeOver(h, &next) {
			return t.Why
		}
		return ""
	case !t.Twice && now.Sub(t.At) >= twiceWithin:
		h.touched = nil
		ks.note(hostfs.Entry{Key: t.journalKey()})
	}
	return why
}

// takeOver makes the value that was found the baseline, and notes when and why.
func (ks *knobs) takeOver(h *held, t *touched) bool {
	batch := []hostfs.Entry{put(t.journalKey(), t)}
	if h.entry != nil {
		batch = append(batch, hostfs.Entry{Key: h.entry.journalKey()})
	}
	if !ks.note(batch...) {
		return false
	}
	h.entry, h.touched = nil, t
	h.dropFast()
	ks.logger.Info("what somebody else set is the baseline now", "workload", h.Workload, "resource", h.Resource, "knob", h.Knob.String(), "value", h.now.String(), "twice", t.Twice)
	return true
}

// note journals what is true in any case.
func (ks *knobs) note(entries ...hostfs.Entry) bool {
	err := ks.journal.Append(entries...)
	if err != nil {
		ks.metrics.Counter("trimtab_actuator_journal_errors_total").Inc()
		ks.logger.Warn("journal that somebody else turned a knob", "err", err)
	}
	return err == nil
}

// forgotten is after how long what is kept of a knob that never came again is dropped.
const forgotten = 24 * time.Hour

// remember takes over what the journal says of knobs that somebody else turned.
func (ks *knobs) remember(all []*touched) {
	for _, t := range all {
		if h := ks.heldOf(ks.config.here(t.KnobID)); h != nil {
			ks.rememberOf(h, t)
		} else if ks.clock.wall().Sub(t.At) > forgotten {
			ks.note(hostfs.Entry{Key: t.journalKey()})
		}
	}
}

func (ks *knobs) rememberOf(h *held, t *touched) {
	if h.id != t.InstanceID || h.Mode != trimtab.Act {
		ks.note(hostfs.Entry{Key: t.journalKey()})
		return
	}
	h.touched, h.foreign = t, !t.Over
}

// recallTouched is remember for an instance that comes later.
func (ks *knobs) recallTouched(h *held) {
	key, s := keyIn(touchedPrefix, h.KnobID), stored{}
	b, ok := ks.journal.Get(key)
	if !ok {
		return
	}
	if err := s.readTouched(key, b); err != nil {
		ks.logger.Warn("read that somebody else turned a knob", "err", err)
		return
	}
	ks.rememberOf(h, s.touched[0])
}

func (s *stored) readTouched(k string, value []byte) error {
	t := &touched{}
	if err := json.Unmarshal(value, t); err != nil {
		return fmt.Errorf("read journal record %q: %w", k, err)
	}
	if err := t.Found.Validate(); err != nil || t.journalKey() != k {
		return trimtab.Invalidf("journal record %q", k)
	}
	s.touched = append(s.touched, t)
	return nil
}

// usualSuspect says who does such a thing.
func usualSuspect(h *held) string {
	if h.can.remote() {
		return "a person, a GitOps tool or another controller"
	}
	return "systemd does so to the groups of its units at daemon-reload"
}

// undone reports whether somebody else has set the baseline while the lease
// holds: it is there instead of a value of trimtab's that was seen before. A
// group that was removed and made anew begins with it, which is nobody's doing.
func (ks *knobs) undone(h *held, before trimtab.Amount) bool {
	e := h.entry
	if !same(h.now, e.Baseline) || same(h.now, e.last()) || ks.fence.left() == 0 ||
		h.now.Less(before) && ks.fence.leftBorrowed() == 0 { // a watchdog did it
		return false
	}
	if !h.foreign && (!e.ours(before) || same(before, h.now)) {
		return false
	}
	if h.can.remote() {
		return true // an instance that was made anew has no entry
	}
	now := whereIs(&h.can)
	return h.written != nil && now != nil && os.SameFile(h.written, now)
}

// whereIs returns what a knob turns, to be known again; nil where that cannot be
// told.
func whereIs(can *Traits) os.FileInfo {
	place := can.place()
	if place == "" {
		return nil
	}
	info, err := os.Stat(place)
	if err != nil {
		return nil
	}
	return info
}
