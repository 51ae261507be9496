package trimtab

import (
	"github.com/trimtab/trimtab/internal/valid"
)

// Unmet is something that the configuration asks of a host and that is not in force there,
// for people.
type Unmet struct {
	// What is "fast" (quotas that move between rounds), "jobs" (the control of best-effort
	// jobs), "weights" (CPU that is shared by weight below one limit), or "claims" (capacity that other pools of the host have).
	What string `json:"what"`
	// Why says what is not in force, and the reason; Do what to do about it.
	Why string `json:"why"`
	Do  string `json:"do,omitempty"`
}

// MaxUnmet bounds the entries of one host.
const MaxUnmet = 20

// Validate bounds its texts.
func (u *Unmet) Validate(host string) error {
	return valid.Texts("what is not in force on "+host, u.What, u.Why, u.Do)
}
