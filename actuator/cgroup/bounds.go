package cgroup

import (
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// boundsEvery is how often to check whether another program set a quota on a group that shares.
const boundsEvery = 10 * time.Second

// bounds is the state of the quota of a group that shares by weight.
type bounds struct {
	// last is the quota that this process set, or found as expected; nil: none yet, so the present
	// quota is the operator's, which Adopt removes.
	last *trimtab.Amount
	// found is the quota that another program set since; nil: none did.
	found *trimtab.Amount
	at    time.Duration
}

// ours records that this process set the present value.
func (b *bounds) ours(a trimtab.Amount) { b.last, b.found = &a, nil }

// another records a quota that differs from the expected one, and reports whether another program
// set it.
func (b *bounds) another(a trimtab.Amount) bool {
	if b.found = nil; b.last != nil && !a.Equal(*b.last, quantum) {
		b.found = &a
	}
	return b.found != nil
}

// InForce returns an error if another program set a quota on the group, which limits what the
// group's weight gives it. trimtab does not change that quota. It checks every boundsEvery.
func (k *Share) InForce() error {
	if now := hostfs.BootTime(); k.last != nil && now-k.at >= boundsEvery {
		k.at = now
		if q, err := k.quota(); err == nil {
			k.another(q.Amount())
		}
	}
	if k.found == nil {
		return nil
	}
	return fmt.Errorf("another program set its quota from %v to %v, which bounds what its weight gives it: it is left alone; set it back, or restart trimtab to lift it: %w", k.last, k.found, trimtab.ErrRefused)
}
