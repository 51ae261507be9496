package cgroup

import (
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab"
)

const (
	// usualShares and usualWeight are the kernel's defaults. trimtab sets that weight for each
	// core.
	usualShares, usualWeight = 1024, 100
)

// weightFile returns the file of the group's weight, with its default and bounds.
func (k *CPU) weightFile() (name string, usual, least, most int64) {
	if k.root.CgroupVersion(k.config.Path) == 2 {
		return path.Join(k.config.Path, "cpu.weight"), usualWeight, 1, mostWeight
	}
	return path.Join(k.config.Path, "cpu.shares"), usualShares, leastShares, mostShares
}

// ReadyWeight checks whether the group's weight may be set. Call it before the knob is journaled.
// It leaves a weight alone that another program set.
func (k *CPU) ReadyWeight() error {
	if k.config.Weighs {
		return nil
	}
	name, usual, _, _ := k.weightFile()
	text, err := k.root.Read(name)
	if err != nil {
		return fmt.Errorf("read weight of cgroup %s: %w", k.config.Path, err)
	}
	if v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err != nil || v != usual {
		return fmt.Errorf("cgroup %s has the weight %.40q, which somebody set: %w", k.config.Path, text, trimtab.ErrUnsupported)
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
	name, usual, least, most := k.weightFile()
	v := int64(math.Round(min(max(cores*float64(usual), float64(least)), float64(most))))
	return whyWeight(k.root, k.config.Path, k.root.Write(name, strconv.FormatInt(v, 10)))
}

// Settle resets burst and weight, which trimtab sets beside the quota.
func (k *CPU) Settle() error {
	err := k.unburst()
	if k.config.Weighs {
		err = errors.Join(err, k.Weigh(1))
	}
	return err
}
