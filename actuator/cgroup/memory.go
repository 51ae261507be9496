package cgroup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"strconv"
	"syscall"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// page returns the unit to which the kernel rounds a limit down: 4 KiB, and 16 or 64 KiB on some
// kernels of arm64.
func page() float64 { return float64(os.Getpagesize()) }

const (
	// margin is the fraction of the usage that stays free above it; leastMargin is its lower bound,
	// in bytes.
	margin, leastMargin = 1.0 / 8, 4 << 20
	// unlimited1 is the value from which version 1 means unlimited: its counter ends at 2^63,
	// rounded down to pages.
	unlimited1 = 1 << 60
)

// Memory is the memory limit of one group. It is never lowered below the memory in use plus a
// margin.
type Memory struct {
	*Files
	// edge is the memory.high that this process set last; nil: none. foreign is the one that another
	// program set; nil: none did.
	edge, foreign *trimtab.Amount
}

// Traits returns the optional abilities of this knob.
func (k *Memory) Traits() actuator.Traits {
	return actuator.Traits{Unit: func() string { return unitIs(&k.config) }, Location: k.Location, Status: k.Status, Floor: k.Floor,
		Recall: k.Recall, Settle: k.Settle, Beside: k.Beside, TakesOver: takesOverMemory, Reclaim: k.Reclaim}
}

// OpenMemory opens the root as Open does.
func OpenMemory(c Config) (*Memory, error) {
	f, err := OpenFiles(c)
	if err != nil {
		return nil, err
	}
	return &Memory{Files: f}, nil
}

// memoryKind is the format name in what Undo returns.
const memoryKind = "cgroup-memory/1"

// ReopenMemory opens the knob that undo describes; see [actuator.Reopen].
func ReopenMemory(undo []byte) (*Memory, error) {
	return actuator.Reopen(memoryKind, undo, OpenMemory)
}

// takesOverMemory reports whether undo is that of a limit alone. One that also changed programs in the
// group is undone first.
func takesOverMemory(undo []byte) bool {
	_, err := actuator.ReadUndo[Config](memoryKind, undo)
	return err == nil
}

// Undo describes the knob for ReopenMemory.
func (k *Memory) Undo() []byte { return actuator.UndoOf(memoryKind, k.config) }

// String names version and path.
func (k *Memory) String() string {
	return fmt.Sprintf("cgroup v%d memory %s", k.version(), k.config.Path)
}

// Resource returns "memory".
func (k *Memory) Resource() string { return trimtab.Memory }

// limit1 is the file of the limit in version 1.
const limit1 = "memory.limit_in_bytes"

// version returns the version of cgroups.
func (k *Memory) version() int { return k.Version(limit1) }

// Probe returns an error unless the group exists and has the controller.
func (k *Memory) Probe(ctx context.Context) error {
	if err := k.Files.Probe(ctx, "the memory controller", k.name()); err != nil {
		return err
	}
	_, err := k.limit(k.config.Path)
	if err == nil {
		_, err = k.inUse()
	}
	if err != nil {
		return fmt.Errorf("probe memory of cgroup %s: %w", k.config.Path, err)
	}
	return nil
}

// MayWrite returns an error if another manager owns the group, or this process may not write it.
func (k *Memory) MayWrite(ctx context.Context) error { return k.Files.MayWrite(ctx, k.name()) }

// Read returns the limit in force, in bytes.
func (k *Memory) Read(ctx context.Context) (trimtab.Amount, error) {
	if err := ctx.Err(); err != nil {
		return trimtab.Amount{}, fmt.Errorf("read memory of cgroup %s: %w", k.config.Path, err)
	}
	limit, err := k.limit(k.config.Path)
	if err == nil {
		k.lookEdge(limit)
	}
	return limit, err
}

// limit reads memory.max, a number or "max", or version 1's
// memory.limit_in_bytes, a number.
func (k *Memory) limit(group string) (trimtab.Amount, error) {
	text, err := k.ReadOf(group, k.name())
	if err != nil {
		return trimtab.Amount{}, err
	}
	if text == "max" || text == "-1" {
		return trimtab.Unlimited(), nil
	}
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return trimtab.Amount{}, trimtab.Invalidf("%s %.40q: want bytes", path.Join(group, k.name()), text)
	}
	if v >= unlimited1 {
		return trimtab.Unlimited(), nil
	}
	return trimtab.Units(float64(v)), nil
}

// inUse returns the memory in use that cannot be reclaimed at once: the usage without the
// inactive part of the page cache.
func (k *Memory) inUse() (float64, error) {
	usage, inactive := "memory.current", "inactive_file"
	if k.version() == 1 {
		usage, inactive = "memory.usage_in_bytes", "total_inactive_file"
	}
	text, err := k.Files.Read(usage)
	if err != nil {
		return 0, err
	}
	used, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, trimtab.Invalidf("%s %.40q of cgroup %s: want bytes", usage, text, k.config.Path)
	}
	stat, err := k.Files.Read("memory.stat")
	if err != nil {
		return 0, err
	}
	v, _ := hostfs.Keyed(stat, inactive) // 0 if it cannot be read: all of the usage counts as in use
	return float64(used - min(used, v)), nil
}

// Floor returns the least limit that may be set now: the use plus an eighth of it, at least 4
// MiB, in whole pages.
func (k *Memory) Floor(ctx context.Context) (trimtab.Amount, error) {
	if err := ctx.Err(); err != nil {
		return trimtab.Amount{}, fmt.Errorf("read use of cgroup %s: %w", k.config.Path, err)
	}
	used, err := k.inUse()
	if err != nil {
		return trimtab.Amount{}, fmt.Errorf("read use of cgroup %s: %w", k.config.Path, err)
	}
	return trimtab.Units(math.Ceil((used+math.Max(leastMargin, margin*used))/page()) * page()), nil
}

// Nearest rounds down to whole pages, at least one.
func (k *Memory) Nearest(a trimtab.Amount) trimtab.Amount { return pages(a, page()) }

func pages(a trimtab.Amount, page float64) trimtab.Amount {
	if a.Unlimited {
		return a
	}
	return trimtab.Units(math.Max(page, math.Floor(math.Min(a.Value, unlimited1/2)/page)*page))
}

// Write sets the limit. Lowering it below Floor fails with trimtab.ErrRefused before any effect.
// The kernel of version 1 refuses a limit that it cannot reach by reclaim; the kernel of version 2
// would kill processes, so close to the usage Write lowers the limit in steps.
func (k *Memory) Write(ctx context.Context, a trimtab.Amount) error {
	if err := errors.Join(ctx.Err(), a.Validate()); err != nil {
		return fmt.Errorf("write memory of cgroup %s: %w", k.config.Path, err)
	}
	if err := k.Owned(); err != nil {
		return err
	}
	now, err := k.limit(k.config.Path)
	if err != nil {
		return err
	}
	k.lookEdge(now)
	next := k.Nearest(a)
	if next.Less(now) {
		return k.lower(ctx, now, next)
	}
	return k.set(ctx, next)
}

// Reclaim has the kernel reclaim so many bytes from the group. That it finds fewer is no error.
func (k *Memory) Reclaim(bytes float64) error {
	err := k.Files.Write("memory.reclaim", strconv.FormatInt(int64(bytes), 10))
	switch {
	case errors.Is(err, syscall.EAGAIN):
		return nil
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("reclaim from cgroup %s: its kernel has no memory.reclaim (version 2, Linux 5.19): %w", k.config.Path, trimtab.ErrUnsupported)
	}
	return err
}

// setLimit sets the limit; for a systemd unit it asks systemd.
func (k *Memory) setLimit(ctx context.Context, next trimtab.Amount) error {
	if k.Unit() != "" {
		bytes := uint64(infinity)
		if !next.Unlimited {
			bytes = uint64(next.Value)
		}
		return k.SetUnit(ctx, "MemoryMax", bytes)
	}
	text := "max"
	if k.version() == 1 {
		text = "-1"
	}
	if !next.Unlimited {
		text = strconv.FormatInt(int64(next.Value), 10)
	}
	return k.Files.Write(k.name(), text)
}

// name returns the name of a limit's file.
func (k *Memory) name() string {
	if k.version() == 1 {
		return limit1
	}
	return "memory.max"
}

// Status returns the lowest limit of the parent groups.
func (k *Memory) Status(context.Context) *trimtab.KnobStatus {
	return tightest(ancestors(k.root, k.config.Path), k.limit)
}
