// Package memory is the form in which what a planner knows of its workloads outlives the process:
// it makes a new planner as patient as the old one was. What the knobs hold is never taken from
// here.
package memory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/num"
	"github.com/trimtab/trimtab/planner/concurrency"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/loan"
	"github.com/trimtab/trimtab/planner/overload"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/replicas"
)

// kind is the form of a state.
const kind = "planner/2"

// Workload is the state kept for one workload.
type Workload struct {
	// Demand is the recommended demand in units of size Unit; nil: none.
	Demand *int       `json:"demand,omitempty"`
	Unit   float64    `json:"unit"`
	Move   guard.Move `json:"move"`
	// Others has demand, unit and move of further resources, by name.
	Others map[string]Workload `json:"others,omitempty"`
	// Loan is what it was lent for alerts; Returned is when it last gave some back.
	Loan     *loan.Loan `json:"loan,omitempty"`
	Returned time.Time  `json:"returned,omitzero"`
	// Number is the state of the number of its instances: past changes and recommendations, and
	// how long starts took.
	Number *replicas.State `json:"number,omitempty"`
	// Overload is what was decided of it in an overload.
	Overload overload.WorkloadState `json:"turn,omitzero"`
	// Admitted is what is known of how many requests it serves in time.
	Admitted *concurrency.State `json:"admitted,omitempty"`
	// Idle is what is known of the time that it had no load, where it may have no instance.
	Idle *replicas.Idle `json:"idle,omitempty"`
}

// Seal returns the state of workloads, by name.
func Seal(all map[string]Workload) ([]byte, error) { return num.Seal(kind, all) }

// Unseal returns the workloads of a state, by name. It returns an error that is
// trimtab.ErrInvalid for anything but what [Seal] returned.
func Unseal(state []byte) (map[string]Workload, error) {
	var all map[string]Workload
	err := num.Unseal(kind, state, &all)
	if bytes.HasPrefix(state, []byte("{")) {
		err = json.Unmarshal(state, &all) // builds of version 1 sealed nothing
	}
	if err != nil {
		return nil, fmt.Errorf("restore planner: %w: %w", trimtab.ErrInvalid, err)
	}
	for n, m := range all {
		switch {
		case !m.valid():
			return nil, trimtab.Invalidf("restore planner: workload %.40q has demand or direction out of range", n)
		case !m.Overload.Valid():
			return nil, trimtab.Invalidf("restore planner: workload %.40q has a turn out of range", n)
		case m.Admitted != nil && !m.Admitted.Valid():
			return nil, trimtab.Invalidf("restore planner: workload %.40q has times or needs out of range", n)
		case !m.Loan.Valid():
			return nil, trimtab.Invalidf("restore planner: workload %.40q has a loan without an end, or too many alerts", n)
		}
	}
	return all, nil
}

func (m *Workload) valid() bool {
	if m.Demand != nil && (*m.Demand < 0 || *m.Demand > policy.MaxUnits) || m.Move.Direction < -1 || m.Move.Direction > 1 {
		return false
	}
	for _, o := range m.Others {
		if len(o.Others) > 0 || !o.valid() {
			return false
		}
	}
	return true
}
