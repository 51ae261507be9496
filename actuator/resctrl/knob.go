package resctrl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/rdt"
)

// Config names the workload.
type Config struct {
	// Tree is where resctrl is mounted.
	Tree string `json:"tree"`
	// Root is the declared cgroup hierarchy, which is only read.
	Root string `json:"root"`
	// Path is the control group, relative to Root.
	Path string `json:"path"`
	// Resource is trimtab.LLC or trimtab.MemBW.
	Resource string `json:"resource"`
	// High prefers ways at the high end; it is for best-effort jobs.
	High bool `json:"high,omitempty"`
	// ID is the control group's inode, which distinguishes it from later ones of its name; 0:
	// any.
	ID uint64 `json:"id,omitempty"`
}

// Host gives access to the resctrl trees of a host.
type Host struct {
	// Open opens a tree; nil: rdt.Open.
	Open func(root string) (rdt.Files, error)
	// Locations returns the locations, by path, whose llc and membw knobs a process owns
	// (actuator.Locations); nil: unknown.
	Locations func(ctx context.Context) (map[string]bool, error)
}

func (h Host) open(root string) (rdt.Files, error) {
	if h.Open != nil {
		return h.Open(root)
	}
	return rdt.Open(root)
}

// Knob is one workload's share of one resource. It is an [actuator.Knob]. It keeps no file open.
type Knob struct {
	config Config
	host   Host
	// id is the inode number of the control group at the last look.
	id uint64
	// grid has the possible values, as of the last look.
	grid grid
	// removed says that the resource group of a workload that is gone was removed; the next Read
	// reports it.
	removed bool
}

// Traits returns the optional abilities of this knob.
func (k *Knob) Traits() actuator.Traits {
	return actuator.Traits{Location: k.Location}
}

// Open checks the names. Probe checks whether the tree and the control group exist: they may come
// and go.
func (h Host) OpenKnob(c Config) (*Knob, error) {
	if c.Path = path.Clean(c.Path); c.Path == "." || path.IsAbs(c.Path) || strings.HasPrefix(c.Path, "..") {
		return nil, trimtab.Invalidf("resctrl of cgroup %q: want a path relative to the root %s", c.Path, c.Root)
	}
	if c.Resource != trimtab.LLC && c.Resource != trimtab.MemBW {
		return nil, trimtab.Invalidf("resctrl of cgroup %s: no resource %q", c.Path, c.Resource)
	}
	if c.Root == "" {
		return nil, trimtab.Invalidf("resctrl of cgroup %s: no root of cgroups", c.Path)
	}
	if c.Tree == "" {
		c.Tree = rdt.Root
	}
	return &Knob{config: c, host: h, id: c.ID, grid: unknownGrid()}, nil
}

// kind is the format name in what Undo returns.
const kind = "resctrl/1"

// Reopen opens the knob that undo describes; see [actuator.Reopen].
func (h Host) Reopen(undo []byte) (*Knob, error) { return actuator.Reopen(kind, undo, h.OpenKnob) }

// Undo describes the knob for Reopen, with the inode of the control group: a later group with the
// same name has nothing to restore.
func (k *Knob) Undo() []byte {
	c := k.config
	c.ID = k.id
	return actuator.UndoOf(kind, c)
}

// String names the resource and the control group.
func (k *Knob) String() string { return "resctrl " + k.config.Resource + " of " + k.config.Path }

// Resource returns "llc" or "membw".
func (k *Knob) Resource() string { return k.config.Resource }

// Close does nothing: no file is kept open.
func (k *Knob) Close() error { return nil }

// Location returns the control group's directory.
func (k *Knob) Location() (string, error) {
	dir := k.location()
	if _, err := os.Stat(dir); err != nil {
		return "", fmt.Errorf("find cgroup of %s: %w", k, err)
	}
	return dir, nil
}

// location returns the directory with links in the root resolved, whether it exists or not.
func (k *Knob) location() string { return rdt.Location(k.config.Root, k.config.Path) }

// identify looks up the control group, and records its inode. there is false if the group is gone,
// or is not the knob's.
func (k *Knob) identify() (there bool, err error) {
	root, err := hostfs.OpenRoot(k.config.Root)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find cgroup of %s: %w", k, err)
	}
	defer root.Close()
	id, err := root.Inode(k.config.Path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("find cgroup of %s: %w", k, err)
	case k.config.ID != 0:
		return id == k.config.ID, nil
	}
	k.id = id
	return true, nil
}

// within opens the tree, calls do, and adds the kernel's message to its error.
func (k *Knob) within(ctx context.Context, verb string, do func(rdt.Files) error) error {
	err := ctx.Err()
	if err == nil {
		err = k.inTree(do)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, k, err)
	}
	return nil
}

func (k *Knob) inTree(do func(rdt.Files) error) error {
	files, err := k.host.open(k.config.Tree)
	if err != nil {
		return err
	}
	return errors.Join(do(files), files.Close())
}

// Probe returns an error unless the host can divide the resource and the control group exists.
func (k *Knob) Probe(ctx context.Context) error {
	return k.within(ctx, "probe", func(f rdt.Files) error {
		if _, err := k.look(f); err != nil {
			return err
		}
		there, err := k.identify()
		if err == nil && !there {
			err = os.ErrNotExist
		}
		return err
	})
}

// MayWrite returns an error if this process may not limit the resource for the workload.
func (k *Knob) MayWrite(ctx context.Context) error {
	return k.within(ctx, "probe", func(f rdt.Files) error {
		l, err := k.look(f)
		if err != nil {
			return err
		}
		there, err := k.identify()
		switch {
		case err != nil:
			return err
		case !there:
			return os.ErrNotExist
		}
		if err := f.Writable("schemata"); err != nil {
			return err
		}
		return k.free(f, l)
	})
}

// Read returns the workload's limit; Unlimited: that of the default group. It moves tasks that
// joined the control group since into the workload's group, so that the value applies to all of
// them; it makes, changes and removes no group.
func (k *Knob) Read(ctx context.Context) (v trimtab.Amount, err error) {
	err = k.within(ctx, "read", func(f rdt.Files) error {
		v, err = k.read(f)
		return err
	})
	return v, err
}

func (k *Knob) read(f rdt.Files) (trimtab.Amount, error) {
	l, err := k.look(f)
	if err != nil {
		return trimtab.Amount{}, err
	}
	there, err := k.identify()
	if err != nil {
		return trimtab.Amount{}, err
	}
	g := l.group(k.group())
	removed := k.removed
	k.removed = false
	switch {
	case g == nil && (there || removed):
		return trimtab.Unlimited(), nil
	case g == nil:
		return trimtab.Amount{}, os.ErrNotExist
	case there:
		// If the workload is gone, Read still returns its group's value, so that the group is
		// removed.
		if _, err := k.gather(f, l); err != nil {
			return trimtab.Amount{}, rdt.Explain(f, err)
		}
	}
	return l.value(k.config.Resource, g), nil
}

// Nearest rounds to a value that the kernel can store: whole ways, or steps of bandwidth, not below
// the least. It returns Unlimited for values from that of the default group on.
func (k *Knob) Nearest(a trimtab.Amount) trimtab.Amount {
	if a.Unlimited {
		return a
	}
	return k.grid.nearest(a.Value)
}

// grid describes the possible values of a resource: multiples of step in [least, most]; values from
// unlimited on mean that of the default group.
type grid struct {
	least, most, step, unlimited float64
	// bandwidth rounds values if a CPU has other steps than whole percents; nil: it has none.
	bandwidth *rdt.Bandwidth
}

// unknownGrid allows all whole numbers; it is used until the tree was read.
func unknownGrid() grid { return grid{1, math.MaxUint32, 1, math.Inf(1), nil} }

func (g grid) nearest(v float64) trimtab.Amount {
	if b := g.bandwidth; b != nil {
		v = b.Kept(b.Asked(math.Max(1, math.Min(v, g.most))))
	} else {
		v = math.Round(math.Min(v, g.most)/g.step) * g.step
	}
	if v = math.Max(v, g.least); v >= g.unlimited {
		return trimtab.Unlimited()
	}
	return trimtab.Units(math.Min(v, g.most))
}
