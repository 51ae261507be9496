package kernel

import (
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/num"
)

// Snapshot returns all points, sealed; what Expect set is not among them.
func (v *Vector) Snapshot() ([]byte, error) { return num.Seal(v.Name(), v.state) }

// Restore restores a snapshot of a learner of the same Config. It returns an error
// that is trimtab.ErrInvalid, and changes nothing, for any other bytes.
func (v *Vector) Restore(b []byte) error {
	var s state
	if err := num.Unseal(v.Name(), b, &s); err != nil {
		return fmt.Errorf("restore kernel: %w: %w", trimtab.ErrInvalid, err)
	}
	if s.Config != v.config || len(s.Points) > v.config.Points {
		return trimtab.Invalidf("restore kernel: %d points of another configuration", len(s.Points))
	}
	for i := range s.Points {
		p := &s.Points[i]
		if err := v.check(p.X); err != nil {
			return fmt.Errorf("restore kernel: %w", err)
		}
		if !(p.Weight >= 1 && p.Weight <= kept) || p.Last < 0 || p.Last > s.Seen || math.IsNaN(p.Y) || math.Abs(p.Y) > 1e12 {
			return trimtab.Invalidf("restore kernel: report %v of weight %v", p.Y, p.Weight)
		}
	}
	v.state, v.fit = s, nil
	return nil
}
