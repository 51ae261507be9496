package drf

import (
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
)

// The kinds of mistake that a row can have; each is also trimtab.ErrInvalid.
var (
	// ErrDemand says that an amount is negative, NaN or infinite.
	ErrDemand = fmt.Errorf("demand: want a finite number >= 0: %w", trimtab.ErrInvalid)
	// ErrResource says that a resource is unknown, or occurs twice in the row.
	ErrResource = fmt.Errorf("resource: %w", trimtab.ErrInvalid)
	// ErrCapacity says that a capacity is negative, NaN or infinite, or its room is not within it.
	ErrCapacity = fmt.Errorf("capacity: %w", trimtab.ErrInvalid)
	// ErrWeight says that a weight is not a finite number > 0, or that a row's rates are so far
	// from 1 that sums of them may leave the range in which capacities are exact to 1e-12.
	ErrWeight = fmt.Errorf("weight: %w", trimtab.ErrInvalid)
	// ErrLimit says that a limit is negative or NaN.
	ErrLimit = fmt.Errorf("limit: want a number >= 0: %w", trimtab.ErrInvalid)
	// ErrMemory says that there are more tenants, resources or entries than the arena has space
	// for.
	ErrMemory = fmt.Errorf("memory: the arena is full: %w", trimtab.ErrInvalid)
)

// finite reports whether x is a finite number >= 0.
func finite(x float64) bool { return x >= 0 && x <= math.MaxFloat64 }

// check validates a problem before anything is solved.
func (p *Problem) check() error {
	if p.Room != nil && len(p.Room) != len(p.Capacities) {
		return fmt.Errorf("%d capacities, %d rooms: %w", len(p.Capacities), len(p.Room), ErrCapacity)
	}
	for r, c := range p.Capacities {
		if !finite(c) {
			return fmt.Errorf("resource %d: capacity %v: want a finite number >= 0: %w", r, c, ErrCapacity)
		}
		if p.Room != nil && !(p.Room[r] >= 0 && p.Room[r] <= c) {
			return fmt.Errorf("resource %d: room %v of %v: %w", r, p.Room[r], c, ErrCapacity)
		}
	}
	return nil
}

// check returns an error for a row with invalid numbers.
func (t *Tenant) check(resources int) error {
	if !finite(t.Weight) || t.Weight == 0 {
		return fmt.Errorf("weight %v: want a finite number > 0: %w", t.Weight, ErrWeight)
	}
	if t.Limit != nil && !(*t.Limit >= 0) {
		return fmt.Errorf("limit %v: %w", *t.Limit, ErrLimit)
	}
	for _, d := range t.Demands {
		switch {
		case d.Resource < 0 || d.Resource >= resources:
			return fmt.Errorf("unknown resource %d of %d: %w", d.Resource, resources, ErrResource)
		case !finite(d.Amount):
			return fmt.Errorf("demand %v of resource %d: %w", d.Amount, d.Resource, ErrDemand)
		case !finite(d.Weight):
			return fmt.Errorf("weight %v of resource %d: want a finite number > 0: %w", d.Weight, d.Resource, ErrWeight)
		}
	}
	return nil
}
