package bintree

import (
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/num"
)

// Snapshot returns the bins and the change test's state, sealed.
func (t *Tree) Snapshot() ([]byte, error) {
	return num.Seal(t.Name(), t.state)
}

// Restore restores a snapshot of a bintree of the same level.
func (t *Tree) Restore(b []byte) error {
	var s state
	if err := num.Unseal(t.Name(), b, &s); err != nil {
		return fmt.Errorf("restore bintree: %w: %w", trimtab.ErrInvalid, err)
	}
	if err := s.validate(); err != nil {
		return fmt.Errorf("restore bintree: %w", err)
	}
	if s.Level != t.level {
		return trimtab.Invalidf("restore bintree: level %v, want %v", s.Level, t.level)
	}
	t.state, t.fit = s, fit{}
	if len(s.Bins) > 0 {
		t.refit()
	}
	return nil
}

// validate refuses what Observe could not have made.
func (s *state) validate() error {
	if len(s.Bins) > maxBins || len(s.Watch.Run) > maxRun || s.Depth > finest || !s.Mode.Known() && len(s.Bins) > 0 {
		return trimtab.Invalidf("%d bins at depth %d of mode %.20q", len(s.Bins), s.Depth, s.Mode)
	}
	for i := range s.Bins {
		b := &s.Bins[i]
		if i > 0 && s.Bins[i-1].Cell >= b.Cell {
			return trimtab.Invalidf("bin %d after %d", b.Cell, s.Bins[i-1].Cell)
		}
		if err := b.Validate(); err != nil {
			return fmt.Errorf("bin %d: %w", b.Cell, err)
		}
	}
	return nil
}
