package planner

import (
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/memory"
)

// snapshotName is the name of the planner's only state.
const snapshotName = "planner"

// Snapshot returns the demands, the last moves and the loans; see [trimtab.Snapshotter].
func (p *Planner) Snapshot() map[string][]byte {
	state := make(map[string]memory.Workload, len(p.workloads))
	for _, w := range p.workloads {
		m := w.States[0].Memory(p.resources[0].Unit)
		m.Loan, m.Returned, m.Overload, m.Admitted = w.Loan, w.Returned, w.Overload, p.admitted[w.Name]
		if w.Number != nil {
			m.Number = &w.Number.State
			if !w.Number.Idle.Since.IsZero() {
				m.Idle = &w.Number.Idle
			}
		}
		for i, d := range w.States[1:] {
			if d != nil {
				if m.Others == nil {
					m.Others = map[string]memory.Workload{}
				}
				m.Others[p.resources[i+1].Name] = d.Memory(p.resources[i+1].Unit)
			}
		}
		state[w.Name] = m
	}
	b, err := memory.Seal(state)
	if err != nil {
		return nil // cannot happen: numbers and times always marshal
	}
	return map[string][]byte{snapshotName: b}
}

// Restore restores a state. It skips unknown workloads, and drops demands that were saved in
// another unit. For anything but a snapshot it returns an error that is trimtab.ErrInvalid, and
// changes nothing.
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
		w.Loan, w.Returned, w.Overload = m.Loan, m.Returned, m.Overload
		if s := p.admitted[n]; s != nil && m.Admitted != nil {
			*s = *m.Admitted
		}
		if w.Number != nil && m.Number != nil {
			declared := w.Number.State.Startup.Declared
			w.Number.State = *m.Number
			w.Number.State.Startup.Declared = declared
			if m.Idle != nil {
				w.Number.Idle = *m.Idle
			}
		}
		w.States[0].Restore(&m, p.resources[0].Unit)
		for name, o := range m.Others {
			if i := p.index(name); i > 0 {
				w.States[i].Restore(&o, p.resources[i].Unit)
			}
		}
	}
	return nil
}
