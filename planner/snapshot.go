package planner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/num"
	"github.com/trimtab/trimtab/planner/guard"
	"github.com/trimtab/trimtab/planner/loan"
	"github.com/trimtab/trimtab/planner/overload"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/replicas"
)

// memory is what of a workload outlives the process: it makes a new planner as
// patient as the old one was. What the knobs hold is never taken from here.
type memory struct {
	// Demand is the recommended demand in units of size Unit; nil: none.
	Demand *int       `json:"demand,omitempty"`
	Unit   float64    `json:"unit"`
	Move   guard.Move `json:"move"`
	// Others has demand, unit and move of further resources, by name.
	Others map[string]memory `json:"others,omitempty"`
	// Loan is what alerts have to do with what it has; Returned is when it last
	// gave back.
	Loan     *loan.Loan `json:"loan,omitempty"`
	Returned time.Time  `json:"returned,omitzero"`
	// Number is what is known of the number of its instances: changes and
	// recommendations of the past, and how long starts took.
	Number *replicas.State `json:"number,omitempty"`
	// Turn is what was decided of it in an overload.
	Turn overload.Turn `json:"turn,omitzero"`
	// Idle is what is known of the time that it had no load, where it may have no instance.
	Idle *replicas.Idle `json:"idle,omitempty"`
}

// snapshotName is the one state of a planner, snapshotKind the form of it.
const snapshotName, snapshotKind = "planner", "planner/2"

// Snapshot returns the demands, the last moves and the loans; see [trimtab.Snapshotter].
func (p *Planner) Snapshot() map[string][]byte {
	state := make(map[string]memory, len(p.workloads))
	for _, w := range p.workloads {
		m := w.dials[0].memory(p.resources[0].Unit)
		m.Loan, m.Returned, m.Turn = w.loan, w.returned, w.turn
		if w.number != nil {
			m.Number = &w.number.state
			if !w.number.idle.Since.IsZero() {
				m.Idle = &w.number.idle
			}
		}
		for i, d := range w.dials[1:] {
			if d != nil {
				if m.Others == nil {
					m.Others = map[string]memory{}
				}
				m.Others[p.resources[i+1].Name] = d.memory(p.resources[i+1].Unit)
			}
		}
		state[w.Name] = m
	}
	b, err := num.Seal(snapshotKind, state)
	if err != nil {
		return nil // numbers and times always marshal
	}
	return map[string][]byte{snapshotName: b}
}

func (d *dial) memory(unit float64) memory {
	m := memory{Unit: unit, Move: d.move}
	if d.knowsDemand {
		m.Demand = &d.demand
	}
	return m
}

// restore takes demand and move back.
func (d *dial) restore(m *memory, unit float64) {
	d.move = m.Move
	if m.Demand != nil && m.Unit == unit {
		d.demand, d.knowsDemand = *m.Demand, true
	}
}

func (m *memory) valid() bool {
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

// Restore takes a state back. Workloads that it does not know are skipped, and
// demands in another unit are dropped. It returns an error that is
// trimtab.ErrInvalid, and changes nothing, for anything but a snapshot.
func (p *Planner) Restore(name string, state []byte) error {
	if name != snapshotName {
		return trimtab.Invalidf("restore planner state %.40q", name)
	}
	var all map[string]memory
	err := num.Unseal(snapshotKind, state, &all)
	if bytes.HasPrefix(state, []byte("{")) {
		err = json.Unmarshal(state, &all) // builds of version 1 sealed nothing
	}
	if err != nil {
		return fmt.Errorf("restore planner: %w: %w", trimtab.ErrInvalid, err)
	}
	for n, m := range all {
		if !m.valid() {
			return trimtab.Invalidf("restore planner: workload %.40q has demand or direction out of range", n)
		}
		if !m.Turn.Valid() {
			return trimtab.Invalidf("restore planner: workload %.40q has a turn out of range", n)
		}
		if !m.Loan.Valid() {
			return trimtab.Invalidf("restore planner: workload %.40q has a loan without an end, or too many alerts", n)
		}
	}
	for n, m := range all {
		w := p.byName[n]
		if w == nil {
			continue
		}
		w.loan, w.returned, w.turn = m.Loan, m.Returned, m.Turn
		if w.number != nil && m.Number != nil {
			declared := w.number.state.Startup.Declared
			w.number.state = *m.Number
			w.number.state.Startup.Declared = declared
			if m.Idle != nil {
				w.number.idle = *m.Idle
			}
		}
		w.dials[0].restore(&m, p.resources[0].Unit)
		for name, o := range m.Others {
			if i := p.index(name); i > 0 && w.dials[i] != nil {
				w.dials[i].restore(&o, p.resources[i].Unit)
			}
		}
	}
	return nil
}
