package cgroup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

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
	config Config
	root   *hostfs.Root
	closed bool
}

// Traits returns the optional abilities of this knob.
func (k *Memory) Traits() actuator.Traits {
	return actuator.Traits{Unit: func() string { return unitIs(&k.config) }, Place: k.Place, Standing: k.Standing, Floor: k.Floor}
}

// Place returns the group's directory.
func (k *Memory) Place() (string, error) { return place(&k.config) }

// OpenMemory opens the root as Open does. Parents are not raised.
func OpenMemory(c Config) (*Memory, error) {
	if len(c.Parents) > 0 {
		return nil, trimtab.Invalidf("cgroup %s: parents of a memory limit are not raised", c.Path)
	}
	if c.Path = path.Clean(c.Path); c.Path == "." || path.IsAbs(c.Path) || strings.HasPrefix(c.Path, "..") {
		return nil, trimtab.Invalidf("cgroup %q: want a path relative to the root %s", c.Path, c.Root)
	}
	root, err := c.Roots.root(c.Root)
	if err != nil {
		return nil, fmt.Errorf("open cgroup %s: %w", c.Path, err)
	}
	return &Memory{config: c, root: root}, nil
}

// memoryKind is the format name in what Undo returns.
const memoryKind = "cgroup-memory/1"

// ReopenMemory opens the knob that undo describes. The error is trimtab.ErrUnsupported if undo
// belongs to another kind of knob.
func ReopenMemory(b []byte) (*Memory, error) {
	var u undo
	if err := json.Unmarshal(b, &u); err != nil || u.Kind != memoryKind {
		return nil, fmt.Errorf("reopen cgroup memory %.60q: %w", b, trimtab.ErrUnsupported)
	}
	return OpenMemory(u.Config)
}

// Undo describes the knob for ReopenMemory.
func (k *Memory) Undo() []byte { return actuator.UndoOf(undo{Kind: memoryKind, Config: k.config}) }

// String names version and path.
func (k *Memory) String() string {
	return fmt.Sprintf("cgroup v%d memory %s", k.version(k.config.Path), k.config.Path)
}

// Resource returns "memory".
func (k *Memory) Resource() string { return trimtab.Memory }

// Close releases the root.
func (k *Memory) Close() error {
	if k.closed {
		return nil
	}
	k.closed = true
	k.root.Forget(k.config.Path)
	return k.root.Close()
}

// version returns 1 or 2; in a tree of plain files by the files of the group.
func (k *Memory) version(group string) int {
	switch k.root.Filesystem() {
	case hostfs.Cgroup1:
		return 1
	case hostfs.Cgroup2:
		return 2
	}
	if ok, err := k.root.Exists(path.Join(group, "memory.limit_in_bytes")); ok && err == nil {
		return 1
	}
	return 2
}

// Probe returns an error unless the group exists and has the controller.
func (k *Memory) Probe(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("probe memory of cgroup %s: %w", k.config.Path, err)
	}
	ok, err := k.root.Exists(k.config.Path)
	if err == nil && !ok {
		err = os.ErrNotExist
	}
	if err != nil {
		return fmt.Errorf("probe memory of cgroup %s in %s: %w", k.config.Path, k.config.Root, err)
	}
	if _, err := k.limit(k.config.Path); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("no memory controller here: %w", trimtab.ErrUnsupported)
		}
		return fmt.Errorf("probe memory of cgroup %s: %w", k.config.Path, err)
	}
	if _, err := k.inUse(); err != nil {
		return fmt.Errorf("probe memory of cgroup %s: %w", k.config.Path, err)
	}
	return nil
}

// MayWrite returns an error if another manager owns the group, or this process may not write it.
func (k *Memory) MayWrite(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("probe memory of cgroup %s: %w", k.config.Path, err)
	}
	if err := owned(&k.config); err != nil {
		return err
	}
	return k.root.Writable(k.file(k.config.Path))
}

// Read returns the limit in force, in bytes.
func (k *Memory) Read(ctx context.Context) (trimtab.Amount, error) {
	if err := ctx.Err(); err != nil {
		return trimtab.Amount{}, fmt.Errorf("read memory of cgroup %s: %w", k.config.Path, err)
	}
	return k.limit(k.config.Path)
}

// limit reads memory.max, a number or "max", or version 1's
// memory.limit_in_bytes, a number.
func (k *Memory) limit(group string) (trimtab.Amount, error) {
	name := k.file(group)
	text, err := k.root.Read(name)
	if err != nil {
		return trimtab.Amount{}, err
	}
	text = strings.TrimSpace(text)
	if text == "max" || text == "-1" {
		return trimtab.Unlimited(), nil
	}
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return trimtab.Amount{}, trimtab.Invalidf("%s %.40q: want bytes", name, text)
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
	if k.version(k.config.Path) == 1 {
		usage, inactive = "memory.usage_in_bytes", "total_inactive_file"
	}
	text, err := k.root.Read(path.Join(k.config.Path, usage))
	if err != nil {
		return 0, err
	}
	used, err := strconv.ParseUint(strings.TrimSpace(text), 10, 63)
	if err != nil {
		return 0, trimtab.Invalidf("%s %.40q of cgroup %s: want bytes", usage, text, k.config.Path)
	}
	stat, err := k.root.Read(path.Join(k.config.Path, "memory.stat"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(stat) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != inactive {
			continue
		}
		// If it cannot be read, all of the usage counts as in use.
		if v, err := strconv.ParseUint(value, 10, 63); err == nil {
			return float64(used - min(used, v)), nil
		}
	}
	return float64(used), nil
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
	if err := owned(&k.config); err != nil {
		return err
	}
	now, err := k.limit(k.config.Path)
	if err != nil {
		return err
	}
	next := k.Nearest(a)
	if next.Less(now) {
		return k.lower(ctx, now, next)
	}
	return k.set(ctx, next)
}

// set sets the limit; for a systemd unit it asks systemd.
func (k *Memory) set(ctx context.Context, next trimtab.Amount) error {
	if unit := unitOf(k.root, k.config.Path); unit != "" {
		bytes := uint64(infinity)
		if !next.Unlimited {
			bytes = uint64(next.Value)
		}
		return setUnit(ctx, unit, "MemoryMax", bytes)
	}
	text := "max"
	if k.version(k.config.Path) == 1 {
		text = "-1"
	}
	if !next.Unlimited {
		text = strconv.FormatInt(int64(next.Value), 10)
	}
	return k.root.Write(k.file(k.config.Path), text)
}

// file returns the file of a group's limit.
func (k *Memory) file(group string) string {
	if k.version(group) == 1 {
		return path.Join(group, "memory.limit_in_bytes")
	}
	return path.Join(group, "memory.max")
}

// Standing returns the lowest limit of the parent groups.
func (k *Memory) Standing(context.Context) *trimtab.Standing {
	return tightest(ancestors(k.root, k.config.Path), k.limit)
}
