package actuator

import (
	"context"
	"errors"

	"github.com/trimtab/trimtab/internal/hostfs"
)

// Journal is a durable map. [hostfs.Journal] implements it in files.
type Journal interface {
	// Get returns the value of a key.
	Get(key string) ([]byte, bool)
	// Keys lists the keys that start with prefix, in order.
	Keys(prefix string) []string
	// Append makes the changes durable before it returns; a nil value deletes. On an error nothing
	// changed. After another process has taken the journal over, every Append fails, so that the
	// former owner can change no knob any more.
	Append(entries ...hostfs.Entry) error
	// Damaged returns how many places could not be read.
	Damaged() int
	Close() error
}

// reportDamage reports how many places of the journal could not be read, and how many baselines
// could.
func (a *Actuator) reportDamage(places, baselines int) {
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

// RestoreJournal restores every baseline of a journal, as [Restore] does for one in a directory.
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
