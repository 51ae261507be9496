package cgroup

import (
	"context"
	"errors"
	"fmt"

	"github.com/trimtab/trimtab"
)

// stepDown is the fraction by which one step lowers a limit. It equals the margin, so that one step
// takes only memory that was just measured as free.
const stepDown = margin

// lower sets a limit below the present one.
func (k *Memory) lower(ctx context.Context, now, goal trimtab.Amount) error {
	err := lower(now, goal, func() (trimtab.Amount, error) { return k.Floor(ctx) }, func(v trimtab.Amount) error {
		if v == now { // raising the limit again is safe even if ctx has ended
			ctx = context.WithoutCancel(ctx)
		}
		return k.set(ctx, v)
	})
	if err != nil {
		return fmt.Errorf("lower memory of cgroup %s: %w", k.config.Path, err)
	}
	return nil
}

// lower lowers a limit from now to goal. Below twice the present use it takes steps, and reads
// the use before each, since the kernel needs time to reclaim cache, and processes allocate
// meanwhile. If it fails, or the floor has risen above the goal, the limit is set back.
func lower(now, goal trimtab.Amount, floor func() (trimtab.Amount, error), set func(trimtab.Amount) error) error {
	for at := now; goal.Less(at); {
		least, err := floor()
		if err == nil && goal.Less(least) {
			err = fmt.Errorf("to %s: with the margin %s are in use: %w",
				trimtab.AmountOf(trimtab.Memory, goal), trimtab.AmountOf(trimtab.Memory, least), trimtab.ErrRefused)
		}
		next := step(at, goal, least)
		if err == nil {
			err = set(next)
		}
		if err != nil && at != now {
			err = errors.Join(err, set(now))
		}
		if err != nil {
			return err
		}
		at = next
	}
	return nil
}

// step returns the next limit on the way from at down to goal: first twice the floor, then an
// eighth less each time.
func step(at, goal, floor trimtab.Amount) trimtab.Amount {
	next := trimtab.Units(2 * floor.Value)
	if !next.Less(at) {
		next = trimtab.Units(at.Value * (1 - stepDown))
	}
	if next = pages(next, page()); next.Less(goal) {
		next = goal
	}
	return next
}
