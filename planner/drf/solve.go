package drf

import (
	"fmt"
)

// full is the fraction of its capacity below which the rest of a resource counts as nothing.
const full = 1e-12

// Solve solves a problem of any size, in O(n log n) of its entries; [Matrix] is for repeated
// problems. Errors are trimtab.ErrInvalid, of one of the kinds in check.go, and name the tenant
// as a row.
func Solve(p Problem) (Solution, error) {
	m, err := p.matrix()
	if err != nil {
		return Solution{}, err
	}
	r, err := m.Solve(Options{})
	if err != nil {
		return Solution{}, err
	}
	return p.solution(r), nil
}

// matrix converts the problem into a matrix.
func (p *Problem) matrix() (*Matrix, error) {
	size := Size{Tenants: len(p.Tenants), Resources: len(p.Capacities)}
	for _, t := range p.Tenants {
		size.Entries += len(t.Demands)
	}
	if err := size.check(); err != nil {
		return nil, err
	}
	m, err := NewMatrix(p.Capacities, p.Room, size, NewArena(size))
	if err != nil {
		return nil, fmt.Errorf("solve: %w", err)
	}
	for _, t := range p.Tenants {
		if err := m.Add(t); err != nil {
			return nil, err
		}
	}
	m.Seal()
	return m, nil
}

// solution converts levels to the tenants' own units.
func (p *Problem) solution(r Result) Solution {
	n := len(p.Tenants)
	s := Solution{Level: make([]float64, n), Share: make([]float64, n), Allocation: make([][]float64, n), Bound: r.Bounds()}
	for i := range p.Tenants {
		t := &p.Tenants[i]
		s.Level[i] = r.Level(i)
		s.Allocation[i] = make([]float64, len(t.Demands))
		key, blocked, _ := t.key(p.Capacities)
		if blocked >= 0 {
			s.Bound[i] = blocked
		}
		if s.Level[i] == 0 {
			continue
		}
		for k, d := range t.Demands {
			if d.Amount > 0 {
				share := d.Amount / p.Capacities[d.Resource] / key * s.Level[i]
				s.Share[i] = max(s.Share[i], share)
				s.Allocation[i][k] = share * p.Capacities[d.Resource]
			}
		}
	}
	for c, room := range r.Room() {
		if p.Capacities[c] > 0 && room <= full {
			s.Saturated = append(s.Saturated, c)
		}
	}
	return s
}
