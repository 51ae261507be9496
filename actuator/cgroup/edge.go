package cgroup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// The soft edge of a memory limit is memory.high, which only version 2 has: above it the kernel
// reclaims from the group and slows it down, so that its pressure shows before a process is killed.
// The knob keeps it below the limit that it sets,
//
//	memory.high = limit − max(limit/16, 1 MiB),   at most a quarter of the limit below it
//
// if it found none ("max"). A memory.high that another program set, as the MemoryQoS of a kubelet or
// Katalyst does, is kept: Beside says so.
const (
	edgePart, leastEdge, mostEdge = 1.0 / 16, 1 << 20, 1.0 / 4
	highFile                      = "memory.high"
)

// edgeOf returns the soft edge below a limit.
func edgeOf(limit trimtab.Amount) trimtab.Amount {
	if limit.Unlimited {
		return limit
	}
	gap := math.Min(math.Max(edgePart*limit.Value, leastEdge), mostEdge*limit.Value)
	return pages(trimtab.Units(limit.Value-gap), page())
}

// high reads memory.high; false: there is none, or it cannot be read.
func (k *Memory) high() (trimtab.Amount, bool) {
	if k.version() == 1 {
		return trimtab.Amount{}, false
	}
	text, err := k.Files.Read(highFile)
	if err != nil {
		return trimtab.Amount{}, false
	}
	if text == "max" {
		return trimtab.Unlimited(), true
	}
	v, err := strconv.ParseUint(text, 10, 63)
	return trimtab.Units(float64(v)), err == nil
}

// lookEdge finds out whether the soft edge of a group with this limit is the knob's to set: nobody set
// one, or its value is the one that belongs to the limit.
func (k *Memory) lookEdge(limit trimtab.Amount) {
	now, ok := k.high()
	k.config.SoftEdge = ok && (now.Unlimited || now == edgeOf(limit) || k.edge != nil && now == *k.edge)
	if k.foreign = nil; ok && !k.config.SoftEdge {
		k.foreign = &now
	}
}

// setEdge sets the soft edge that belongs to a limit.
func (k *Memory) setEdge(ctx context.Context, limit trimtab.Amount) error {
	if !k.config.SoftEdge {
		return nil
	}
	return k.writeHigh(ctx, edgeOf(limit))
}

func (k *Memory) writeHigh(ctx context.Context, to trimtab.Amount) error {
	text, bytes := "max", uint64(infinity)
	if !to.Unlimited {
		bytes = uint64(to.Value)
		text = strconv.FormatUint(bytes, 10)
	}
	k.edge = &to
	if k.Unit() != "" {
		return k.SetUnit(ctx, "MemoryHigh", bytes)
	}
	return k.Files.Write(highFile, text)
}

// Settle takes the soft edge away, if the knob set it, once the limit is restored.
func (k *Memory) Settle() error {
	now, ok := k.high()
	if !ok || !k.config.SoftEdge || now.Unlimited {
		return nil
	}
	limit, err := k.limit(k.config.Path)
	if err == nil && (now == edgeOf(limit) || k.edge != nil && now == *k.edge) {
		err = k.writeHigh(context.Background(), trimtab.Unlimited())
	}
	if err != nil {
		return fmt.Errorf("take back memory.high of cgroup %s: %w", k.config.Path, err)
	}
	return nil
}

// Recall restores from the record of an earlier process whether the knob sets the soft edge.
func (k *Memory) Recall(undo []byte) error {
	u, err := actuator.ReadUndo[Config](memoryKind, undo)
	if err != nil {
		return trimtab.Invalidf("undo %.60q of cgroup %s", undo, k.config.Path)
	}
	k.config.SoftEdge = k.config.SoftEdge || u.SoftEdge
	return nil
}

// Beside returns why the knob sets no soft edge below its limit although the kernel has one; "": it
// does, or the kernel has none.
func (k *Memory) Beside() string {
	if k.foreign == nil {
		return ""
	}
	return fmt.Sprintf("another program set memory.high of cgroup %s to %s, which is kept: no soft edge is set below its limit", k.config.Path, trimtab.AmountOf(trimtab.Memory, *k.foreign))
}

// set sets a limit with its soft edge: the edge falls first and rises last, so that it is never above
// the limit.
func (k *Memory) set(ctx context.Context, next trimtab.Amount) error {
	now, err := k.limit(k.config.Path)
	if err != nil {
		return err
	}
	if next.Less(now) {
		return errors.Join(k.setEdge(ctx, next), k.setLimit(ctx, next))
	}
	if err := k.setLimit(ctx, next); err != nil {
		return err
	}
	return k.setEdge(ctx, next)
}
