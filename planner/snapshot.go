package planner

import (
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/memory"
)

// snapshotName is the one state of a planner.
const snapshotName = "planner"

// Snapshot returns the demands, the last moves and the loans; see [trimtab.Snapshotter].
func (p *Planner) Snapshot() map[string][]byte {
	state := make(map[string]memory.Workload, len(p.workloads))
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
					m.Others = map[string]memory.Workload{}
				}
				m.Others[p.resources[i+1].Name] = d.memory(p.resources[i+1].Unit)
			}
		}
		state[w.Name] = m
	}
	b, err := memory.Seal(state)
	if err != nil {
		return nil // numbers and times always marshal
	}
	return map[string][]byte{snapshotName: b}
}

func (d *dial) memory(unit float64) memory.Workload {
	m := memory.Workload{Unit: unit, Move: d.move}
	if d.knowsDemand {
		m.Demand = &d.demand
	}
	return m
}

// restore takes demand and move back.
func (d *dial) restore(m *memory.Workload, unit float64) {
	d.move = m.Move
	if m.Demand != nil && m.Unit == unit {
		d.demand, d.knowsDemand = *m.Demand, true
	}
}

// Restore takes a state back. Workloads that it does not know are skipped, and
// demands in another unit are dropped. It returns an error that is
// trimtab.ErrInvalid, and changes nothing, for anything but a snapshot.
func (p *Planner) Restore(name string, state []byte) error {
	if name != snapshotName {
		return trimtab.Invalidf("restore planner state %.40q", name)
	}
	all, err := memory.Unseal(state)
	if err != nil {
		return err
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
