package actuator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Journal is a durable map. [hostfs.Journal] is one in files.
type Journal interface {
	// Get returns the value of a key.
	Get(key string) ([]byte, bool)
	// Keys lists the keys that start with prefix, in order.
	Keys(prefix string) []string
	// Append makes the changes durable before it returns; a nil value deletes. On an
	// error nothing changed, and where another process has taken the journal over, each
	// is one: who lost it has no effect any more.
	Append(entries ...hostfs.Entry) error
	// Damaged returns how many places could not be read.
	Damaged() int
	Close() error
}

func (a *Actuator) openJournal(ctx context.Context) (Journal, error) {
	if a.config.OpenJournal != nil {
		return a.config.OpenJournal(ctx)
	}
	return hostfs.OpenJournal(a.config.Dir, a.config.JournalSize)
}

// tellDamage says that so many places of the journal could not be read, and so many
// baselines could.
func (a *Actuator) tellDamage(places, baselines int) {
	damage := hostfs.Damage{}
	if j, ok := a.journal.(*hostfs.Journal); ok {
		damage = j.Damage()
	}
	if damage.Lost && baselines == 0 {
		a.logger.Error("the journal cannot be read: a limit that an earlier start of trimtab set may still be in place, and counts as its baseline from now on; compare the limits with those that you want", "dir", a.config.Dir, "damage", damage.String())
		return
	}
	a.logger.Warn("journal was damaged; what was readable is used", "places", places, "damage", damage.String())
}

// RestoreJournal puts every baseline of a journal back, as [Restore] does of one in a
// directory.
func RestoreJournal(ctx context.Context, j Journal, reopen func(undo []byte) (Knob, error)) (Report, error) {
	s := readState(journalState(j))
	all := reopenAll(s.entries, reopen)
	defer closeAll(all)
	r, err := restoreParts(ctx, all, false, func(part Report) error {
		if done := finished(part); len(done) > 0 {
			return j.Append(done...)
		}
		return nil
	})
	r.Damaged = s.unreadable + j.Damaged()
	return r, errors.Join(r.Err(), err)
}

// leaveAlone is how long a knob is left alone whose value did not come into force.
const leaveAlone = time.Minute

// abandon puts back what is in force where what was asked for will not come: a pending
// grow blocks others and delivers nothing.
func (a *Actuator) abandon(ctx context.Context) {
	for _, h := range a.knobs {
		r, ok := h.Knob.(Remote)
		if !ok || h.entry == nil || h.effective == nil || h.foreign || a.lease.left(a.clock.id, a.clock.boot()) == 0 {
			continue
		}
		why := r.Hopeless(ctx)
		if why == "" {
			continue
		}
		if err := a.giveBack(ctx, h, *h.effective, why); err != nil {
			a.logger.Warn("put back what did not come into force", "knob", h.Name(), "err", err)
		}
	}
}

// giveBack sets a value, journal first, and leaves the knob alone for a while.
func (a *Actuator) giveBack(ctx context.Context, h *held, v trimtab.Amount, why string) error {
	back := *h.entry
	back.Wrote = []trimtab.Amount{h.now, v}
	if err := a.journal.Append(put(back.journalKey(), &back)); err != nil {
		return err
	}
	asked := h.now
	h.entry = &back
	h.hopeless, h.hopelessUntil = fmt.Sprintf("asked for %v, put back to %v: %s", asked, v, why), saturate(a.clock.boot(), leaveAlone)
	err := h.Knob.Write(ctx, v)
	a.observe(ctx, h)
	a.setProblem(h, h.hopeless)
	a.metrics.Counter("trimtab_actuator_abandoned_total").Inc()
	return err
}
