package trimtab

import (
	"fmt"

	"github.com/trimtab/trimtab/internal/valid"
)

// Envelope is what a host may do with a knob by itself until the next plan, in the resource's
// unit: never below Floor, never above Ceiling, and at Target unless something asks for more or
// less.
//
// The zero values of Lend and Borrow keep the knob at Target, so that an envelope of a planner
// that only knows the first three fields moves nothing.
type Envelope struct {
	// Floor <= Target <= Ceiling.
	Floor   float64 `json:"floor"`
	Target  float64 `json:"target"`
	Ceiling float64 `json:"ceiling"`
	// Budget is how long the workload may stand still in a period of 100 ms without harm to its
	// SLO, in [0, 100 ms].
	Budget Seconds `json:"budget_s,omitempty"`
	// Late is the share of the time that may be stalled beyond Budget, in [0, 1).
	Late float64 `json:"late,omitempty"`
	// Lend allows less than Target while others of the host need it.
	Lend bool `json:"lend,omitempty"`
	// Borrow allows more than Target while others of the host do not need it.
	Borrow bool `json:"borrow,omitempty"`
	// Burst is the most unused CPU time that the kernel may save (CFS burst), as an amount per
	// period like the knob itself; never more than the knob's value. 0: none.
	Burst float64 `json:"burst,omitempty"`
}

// Enveloped is the envelope of a knob whose target a plan does not change.
type Enveloped struct {
	KnobID
	// At is where it rests.
	At Amount `json:"at"`
	// Envelope is what it may be moved within; nil: nothing any more.
	Envelope *Envelope `json:"envelope,omitempty"`
}

// validate checks names and amounts.
func (e *Enveloped) validate(pool string) error {
	if err := e.KnobID.validate(pool, e.Host); err != nil {
		return err
	}
	if err := e.At.Validate(); err != nil {
		return fmt.Errorf("envelope of %.300s: %w", e.Workload, err)
	}
	if e.Envelope == nil {
		return nil
	}
	if err := e.Envelope.Validate(); err != nil {
		return fmt.Errorf("envelope of %.300s: %w", e.Workload, err)
	}
	return nil
}

// envelopePeriod is the period that Budget and Burst of an envelope refer to, in seconds.
const envelopePeriod = 0.1

// Validate refuses what is no range around its target.
func (e *Envelope) Validate() error {
	for _, v := range []float64{e.Floor, e.Target, e.Ceiling, float64(e.Budget), e.Late, e.Burst} {
		if err := valid.NonNegative("envelope", v); err != nil {
			return err
		}
	}
	switch {
	case e.Floor > e.Target || e.Target > e.Ceiling:
		return Invalidf("envelope: floor %v, target %v, ceiling %v: want them in this order", e.Floor, e.Target, e.Ceiling)
	case e.Budget > envelopePeriod:
		return Invalidf("envelope: budget %v s: want at most a period of %v s", float64(e.Budget), envelopePeriod)
	case e.Late >= 1:
		return Invalidf("envelope: share late %v: want less than 1", e.Late)
	case e.Burst > e.Ceiling:
		return Invalidf("envelope: burst %v over its ceiling %v", e.Burst, e.Ceiling)
	}
	return nil
}

// Least is the lowest amount that the envelope allows.
func (e *Envelope) Least() float64 {
	if e.Lend {
		return e.Floor
	}
	return e.Target
}

// Most is the highest amount that the envelope allows.
func (e *Envelope) Most() float64 {
	if e.Borrow {
		return e.Ceiling
	}
	return e.Target
}
