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

// The values of [Unmet.What].
const (
	UnmetFast    = "fast"
	UnmetJobs    = "jobs"
	UnmetClaims  = "claims"
	UnmetWeights = "weights"
)

// MaxUnmet bounds the entries of one host.
const MaxUnmet = 20

// validUnmet checks a host's list of what is not in force.
func validUnmet(host string, all []Unmet) error {
	if len(all) > MaxUnmet {
		return Invalidf("host %s: %d things that are not in force, limit %d", host, len(all), MaxUnmet)
	}
	for i := range all {
		if err := valid.Texts("what is not in force on "+host, all[i].What, all[i].Why, all[i].Do); err != nil {
			return err
		}
	}
	return nil
}
