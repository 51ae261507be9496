package gp

import (
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/num"
)

// Snapshot returns the bins and the change test's state, sealed.
func (p *Process) Snapshot() ([]byte, error) { return num.Seal(p.Name(), p.state) }

// Restore restores a snapshot of a gp of the same level.
func (p *Process) Restore(b []byte) error {
	var s state
	if err := num.Unseal(p.Name(), b, &s); err != nil {
		return fmt.Errorf("restore gp: %w: %w", trimtab.ErrInvalid, err)
	}
	if err := s.validate(); err != nil {
		return fmt.Errorf("restore gp: %w", err)
	}
	if s.Level != p.level {
		return trimtab.Invalidf("restore gp: level %v, want %v", s.Level, p.level)
	}
	p.state, p.fit = s, fit{}
	if len(s.Bins) > 0 {
		p.refit(everything)
	}
	return nil
}

// validate refuses what Observe could not have made.
func (s *state) validate() error {
	if len(s.Bins) > maxBins || !s.Mode.Known() && len(s.Bins) > 0 {
		return trimtab.Invalidf("%d bins of mode %.20q", len(s.Bins), s.Mode)
	}
	if len(s.Watch.Now) >= block || len(s.Watch.Run) > maxRun {
		return trimtab.Invalidf("a block of %d reports, a run of %d", len(s.Watch.Now), len(s.Watch.Run))
	}
	for i := range s.Bins {
		b := &s.Bins[i]
		if i > 0 && s.Bins[i-1].High > b.Low || !(b.Low <= b.High) || math.Abs(b.X) > 200 {
			return trimtab.Invalidf("bin %d: from %v to %v, mean %v", i, b.Low, b.High, b.X)
		}
		if err := b.Validate(); err != nil {
			return fmt.Errorf("bin %d: %w", i, err)
		}
	}
	for _, j := range append(s.Watch.Now[:len(s.Watch.Now):len(s.Watch.Now)], s.Watch.Run...) {
		if !(j.W > 0 && j.Noise > 0 && j.Curve >= 0) {
			return trimtab.Invalidf("report of weight %v, noise %v", j.W, j.Noise)
		}
	}
	return nil
}
