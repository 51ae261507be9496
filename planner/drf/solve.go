package drf

import (
	"fmt"
	"math"
)

// Solve answers a problem of any size; a matrix form for those that come again
// and again. Errors are trimtab.ErrInvalid and name the tenant as a row.
func Solve(p Problem) (Solution, error) {
	if err := p.check(); err != nil {
		return Solution{}, err
	}
	n := len(p.Tenants)
	s := Solution{Level: make([]float64, n), Share: make([]float64, n), Allocation: make([][]float64, n), Bound: make([]int, n)}
	room := make([]float64, len(p.Capacities))
	for r, c := range p.Capacities {
		if room[r] = 1; p.Room != nil && c > 0 {
			room[r] = p.Room[r] / c
		}
	}
	rate := make([][]float64, n)
	limit := make([]float64, n)
	active := 0
	frozen := make([]bool, n)
	for i, t := range p.Tenants {
		rate[i] = make([]float64, len(t.Demands))
		s.Allocation[i] = make([]float64, len(t.Demands))
		s.Bound[i] = ByNothing
		key := 0.0
		if err := t.check(len(p.Capacities)); err != nil {
			return Solution{}, fmt.Errorf("row %d: %w", i, err)
		}
		for _, d := range t.Demands {
			w := d.Weight
			if w == 0 {
				w = t.Weight
			}
			if d.Amount > 0 {
				key = max(key, d.Amount/p.Capacities[d.Resource]/w)
			}
		}
		for k, d := range t.Demands {
			if d.Amount > 0 {
				if p.Capacities[d.Resource] == 0 {
					s.Bound[i] = d.Resource
				}
				rate[i][k] = d.Amount / p.Capacities[d.Resource] / key
			}
		}
		limit[i] = math.Inf(1)
		if t.Limit != nil {
			limit[i] = *t.Limit * key
		}
		if frozen[i] = key == 0 || math.IsInf(key, 1); !frozen[i] {
			active++
		}
	}
	level := 0.0
	for active > 0 {
		sum := make([]float64, len(room))
		next := math.Inf(1)
		for i, t := range p.Tenants {
			if frozen[i] {
				continue
			}
			next = min(next, limit[i])
			for k, d := range t.Demands {
				sum[d.Resource] += rate[i][k]
			}
		}
		full := make([]bool, len(room))
		for r := range room {
			if sum[r] > 0 {
				next = min(next, level+room[r]/sum[r])
			}
		}
		for r := range room {
			full[r] = sum[r] > 0 && level+room[r]/sum[r] <= next
			if room[r] -= sum[r] * (next - level); full[r] {
				room[r] = 0
			}
		}
		level = next
		for i, t := range p.Tenants {
			if frozen[i] {
				continue
			}
			s.Level[i] = level
			if limit[i] <= level {
				frozen[i], s.Bound[i] = true, ByLimit
				active--
				continue
			}
			for _, d := range t.Demands {
				if d.Amount > 0 && full[d.Resource] {
					frozen[i], s.Bound[i] = true, d.Resource
					active--
					break
				}
			}
		}
	}
	for i, t := range p.Tenants {
		for k, d := range t.Demands {
			share := rate[i][k] * s.Level[i]
			if s.Level[i] == 0 {
				share = 0
			}
			s.Share[i] = max(s.Share[i], share)
			s.Allocation[i][k] = share * p.Capacities[d.Resource]
		}
	}
	for r := range room {
		if room[r] <= 1e-12 && p.Capacities[r] > 0 {
			s.Saturated = append(s.Saturated, r)
		}
	}
	return s, nil
}
