package actuator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// judge finds out whether another program changed the knob, whose value was before until this read.
func (ks *knobs) judge(h *managed, before trimtab.Amount) {
	why := ""
	switch {
	case h.entry == nil:
	case h.entry.free(h.now):
	case !h.entry.ours(h.now) && !same(h.now, h.entry.Baseline):
		why = fmt.Sprintf("changed by somebody else%s to %v, trimtab wrote %v: resume takes it over", inBrackets(h.can.setBy()), h.now, h.entry.Wrote)
	case ks.undone(h, before):
		why = fmt.Sprintf("put back by somebody else to its baseline %v, trimtab wrote %v (%s): resume goes on from there",
			h.now, h.entry.last(), usualSuspect(h))
	}
	if h.can.remote() && ks.config.ForeignHold > 0 {
		why = ks.leaveTo(h, why)
	}
	if why != "" || h.block.foreign {
		ks.setProblem(h, why)
	}
	h.block.foreign = why != ""
}

// touched records that another program changed a remote knob. It is journaled: a restart must not
// end the time for which the knob is left alone.
type touched struct {
	trimtab.KnobID
	// InstanceID differs from that of earlier instances of the same name.
	InstanceID uint64 `json:"instance_id,omitempty"`
	// At is when the actuator found the value Found.
	At    time.Time      `json:"at"`
	Found trimtab.Amount `json:"found"`
	Why   string         `json:"why"`
	// Over says that Found became the baseline. Twice says that this was the second change within
	// twiceWithin; the knob is then only recommended until a resume.
	Over  bool `json:"over,omitempty"`
	Twice bool `json:"twice,omitempty"`
}

// twiceWithin is the time within which a second change means that the other program will keep
// changing the knob.
const twiceWithin = time.Hour

func (t *touched) journalKey() string { return keyIn(touchedPrefix, t.KnobID) }

// leaveTo stops writing a knob that another program changed, as why says. It returns why the knob
// is left alone now; "": it is not.
func (ks *knobs) leaveTo(h *managed, why string) string {
	now, t := ks.clock.wall(), h.block.touched
	if t != nil && now.Before(t.At) {
		t.At = now // otherwise a clock that was ahead would prolong the wait
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
		h.block.touched = next
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
		h.block.touched = nil
		ks.note(hostfs.Entry{Key: t.journalKey()})
	}
	return why
}

// takeOver makes the value found the baseline, and records when and why.
func (ks *knobs) takeOver(h *managed, t *touched) bool {
	batch := []hostfs.Entry{put(t.journalKey(), t)}
	if h.entry != nil {
		batch = append(batch, hostfs.Entry{Key: h.entry.journalKey()})
	}
	if !ks.note(batch...) {
		return false
	}
	h.entry, h.block.touched = nil, t
	h.dropFast()
	ks.logger.Info("what somebody else set is the baseline now", "workload", h.Workload, "resource", h.Resource, "knob", h.Knob.String(), "value", h.now.String(), "twice", t.Twice)
	return true
}

// note journals entries that are true whatever happens next.
func (ks *knobs) note(entries ...hostfs.Entry) bool {
	err := ks.journal.Append(entries...)
	if err != nil {
		ks.metrics.Counter("trimtab_actuator_journal_errors_total").Inc()
		ks.logger.Warn("journal that somebody else turned a knob", "err", err)
	}
	return err == nil
}

// forgotten is the time after which the state of a knob that never returned is dropped.
const forgotten = 24 * time.Hour

// remember restores from the journal which knobs another program changed.
func (ks *knobs) remember(all []*touched) {
	for _, t := range all {
		if h := ks.findAny(ks.config.here(t.KnobID)); h != nil {
			ks.rememberOf(h, t)
		} else if ks.clock.wall().Sub(t.At) > forgotten {
			ks.note(hostfs.Entry{Key: t.journalKey()})
		}
	}
}

func (ks *knobs) rememberOf(h *managed, t *touched) {
	if h.id != t.InstanceID || h.Mode != trimtab.Act {
		ks.note(hostfs.Entry{Key: t.journalKey()})
		return
	}
	h.block.touched, h.block.foreign = t, !t.Over
}

// recallTouched does the same for an instance that comes later.
func (ks *knobs) recallTouched(h *managed) {
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

// inBrackets returns a name as an addition to a text.
func inBrackets(name string) string {
	if name == "" {
		return ""
	}
	return " (" + name + ")"
}

// usualSuspect names the program that most likely changed the knob.
func usualSuspect(h *managed) string {
	if h.can.remote() {
		return cmp.Or(h.can.setBy(), "a person, a GitOps tool or another controller")
	}
	return "systemd does so to the groups of its units at daemon-reload"
}

// undone reports whether another program has set the knob to its baseline while the lease lasts,
// after trimtab's value was read there. It is false for a control group that was removed and made
// again, which starts with the baseline.
func (ks *knobs) undone(h *managed, before trimtab.Amount) bool {
	e := h.entry
	if !same(h.now, e.Baseline) || same(h.now, e.last()) || ks.fence.left() == 0 ||
		h.now.Less(before) && ks.fence.leftBorrowed() == 0 { // a watchdog set it
		return false
	}
	if !h.block.foreign && (!e.ours(before) || same(before, h.now)) {
		return false
	}
	if h.can.remote() {
		return h.can.Forgot == nil || !h.can.Forgot() // an instance that was made again has no entry
	}
	now := whereIs(&h.can)
	return h.written != nil && now != nil && os.SameFile(h.written, now)
}

// whereIs returns the file that the knob sets, to recognise it later; nil: it has none.
func whereIs(can *Traits) os.FileInfo {
	place := can.location()
	if place == "" {
		return nil
	}
	info, err := os.Stat(place)
	if err != nil {
		return nil
	}
	return info
}
