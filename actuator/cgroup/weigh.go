package cgroup

import (
	"context"
	"errors"
	"fmt"

	"github.com/trimtab/trimtab"
)

const (
	// usualShares and usualWeight are the kernel's defaults. trimtab sets that weight for each
	// core.
	usualShares, usualWeight = 1024, 100
)

// weight returns the knob of the group's weight.
func (k *CPU) weight() *Weight { return &Weight{k.Files} }

// ReadyWeight checks whether the group's weight may be set. Call it before the knob is journaled.
// It leaves a weight alone that another program set.
func (k *CPU) ReadyWeight() error {
	if k.config.Weighs {
		return nil
	}
	v, err := k.weight().Read(context.Background())
	if err != nil {
		return fmt.Errorf("read weight of cgroup %s: %w", k.config.Path, err)
	}
	if !v.Equal(trimtab.Units(usualWeight), 1e-9) {
		return fmt.Errorf("cgroup %s has the weight %v, which somebody set: %w", k.config.Path, v, trimtab.ErrUnsupported)
	}
	k.config.Weighs = true
	return nil
}

// Weigh sets the weight of the group among its siblings to that of the given cores. Unlike a write
// to the quota, this does not refill the group's period.
func (k *CPU) Weigh(cores float64) error {
	if !k.config.Weighs {
		return nil
	}
	w := k.weight()
	return w.put(w.Nearest(trimtab.Units(max(cores*usualWeight, 1e-6)))) // 0 would make the group idle
}

// Settle resets burst and weight, which trimtab sets beside the quota.
func (k *CPU) Settle() error {
	err := k.unburst()
	if k.config.Weighs {
		err = errors.Join(err, k.Weigh(1))
	}
	return err
}
