package actuator_test

import (
	"context"
	"testing"
	"time"

	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// appended counts how often a journal was appended to.
type appended struct {
	actuator.Journal
	times int
}

func (j *appended) Append(entries ...hostfs.Entry) error {
	j.times++
	return j.Journal.Append(entries...)
}

func TestAPlanThatOnlyRenewsIsNotWrittenWhileTwoThirdsOfTheLeaseAreLeft(t *testing.T) {
	h := newHost(t, units(2))
	j := &appended{}
	h.config.OpenJournal = func(context.Context) (actuator.Journal, error) {
		of, err := hostfs.OpenJournal(h.config.Dir, h.config.JournalSize)
		j.Journal = of
		return j, err
	}
	h.open()
	h.statuses(h.plan(1, 1, set(0, units(2), units(1))))
	before := j.times
	for sequence := uint64(2); sequence <= 10; sequence++ { // a lease is 30 s
		h.pass(time.Second)
		h.statuses(h.plan(1, sequence))
		h.Tick(t.Context())
	}
	if j.times != before {
		t.Errorf("%d writes in 9 s, want none", j.times-before)
	}
	h.pass(time.Second)
	h.statuses(h.plan(1, 11))
	if j.times != before+1 {
		t.Errorf("%d writes after a third of the lease, want one", j.times-before)
	}
	h.statuses(h.plan(2, 1))
	if j.times != before+2 {
		t.Errorf("%d writes, want one more for a new term", j.times-before)
	}
}

func TestAfterACrashALeaseThatWasRenewedHoldsForTwoThirdsAtLeast(t *testing.T) {
	h := newHost(t, units(2)).open()
	h.statuses(h.plan(1, 1, set(0, units(2), units(1))))
	for sequence := uint64(2); sequence <= 30; sequence++ {
		h.pass(time.Second)
		h.statuses(h.plan(1, sequence))
	}
	h.crash()
	h.pass(19 * time.Second)
	h.open()
	h.want(units(1))
	h.pass(11 * time.Second)
	h.Tick(t.Context())
	h.want(units(2))
}

// A watchdog that reads the journal must not take a lease for over that is not.
func TestALeaseThatNoPlanRenewsAnyMoreIsWrittenToItsEnd(t *testing.T) {
	h := newHost(t, units(2)).open()
	h.statuses(h.plan(1, 1, set(0, units(2), units(1))))
	h.pass(9 * time.Second)
	h.statuses(h.plan(1, 2)) // until 39 s
	for range 20 {
		h.pass(time.Second)
		h.Tick(t.Context())
	}
	h.crash()
	h.pass(9 * time.Second)
	h.open()
	h.want(units(1))
	h.pass(time.Second)
	h.Tick(t.Context())
	h.want(units(2))
}
