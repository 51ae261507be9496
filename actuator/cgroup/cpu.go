package cgroup

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Config names the group.
type Config struct {
	// Root is the declared directory: the mount of the hierarchy that has the cpu controller, or a
	// group in it. trimtab never writes outside it.
	Root string `json:"root"`
	// Path is the path of the group relative to Root, which it must not equal.
	Path string `json:"path"`
	// Force allows writing groups of systemd units that were not delegated.
	Force bool `json:"force,omitempty"`
	// Parents are the parent groups whose quotas may be raised if they are below this group's.
	Parents []Parent `json:"parents,omitempty"`
	// Bursts says that trimtab sets the group's CFS burst, which was 0 before.
	Bursts bool `json:"bursts,omitempty"`
	// Weighs says that trimtab sets the group's weight, which was the kernel's default before.
	Weighs bool `json:"weighs,omitempty"`
	// SoftEdge says that trimtab sets the group's memory.high, which was unlimited before.
	SoftEdge bool `json:"soft_edge,omitempty"`
	// Idles lets a weight of 0 make the group idle, and any other end that: the group is a
	// best-effort job's. Else nobody's idleness is ended.
	Idles bool `json:"idles,omitempty"`
	// Roots lets the knobs of one root share its open files, two descriptors each. Nil: they do
	// not share.
	Roots *Roots `json:"-"`
}

// Roots has the open roots of knobs, by path. The zero Roots is empty. It is safe for concurrent
// use.
type Roots struct {
	mu   sync.Mutex
	open map[string]*hostfs.Root
}

// root opens a root, or returns the open one.
func (r *Roots) root(at string) (*hostfs.Root, error) {
	if r == nil {
		return hostfs.OpenRoot(at)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.open[at]; known != nil {
		if shared := known.Share(); shared != nil {
			return shared, nil
		}
	}
	root, err := hostfs.OpenRoot(at)
	if err != nil {
		return nil, err
	}
	if r.open == nil {
		r.open = map[string]*hostfs.Root{}
	}
	root.KeepOpen()
	r.open[at] = root
	return root, nil
}

// Parent is a parent group whose quota trimtab may raise to one value.
type Parent struct {
	// Path is relative to Root.
	Path string `json:"path"`
	// Raise is the quota to which it is raised when it is too low, in cores.
	Raise float64 `json:"raise"`
	// Baseline is its quota when the knob was opened. Open sets it.
	Baseline *trimtab.Amount `json:"baseline,omitempty"`
}

// CPU is the quota of one group. It is an [actuator.Knob].
type CPU struct {
	*Files
	period int64
	// unit is the systemd unit to which the group belongs; "": none.
	unit string
	// quick has the open files for quick moves; nil: none.
	quick *quick
	// force has the last readings of the quota's effect.
	force force
}

// Traits returns the optional abilities of this knob.
func (k *CPU) Traits() actuator.Traits {
	return actuator.Traits{
		Unit: func() string { return unitIs(&k.config) }, Location: k.Location, Status: k.Status, InForce: k.InForce,
		Recall: k.Recall, Settle: k.Settle, Quick: k, Pressure: k.Pressure, Weight: actuator.Weight{Set: k.Weigh, Ready: k.ReadyWeight},
	}
}

// Open opens the root. Probe checks whether the group, which may come and go, exists, and who owns
// it.
func Open(c Config) (*CPU, error) {
	parents := c.Parents
	c.Parents = nil
	f, err := OpenFiles(c)
	if err != nil {
		return nil, err
	}
	k := &CPU{Files: f, period: hostfs.DefaultPeriod, unit: f.Unit()}
	k.config.Parents = make([]Parent, len(parents))
	for i, p := range parents {
		p.Path = path.Clean(p.Path)
		if !strings.HasPrefix(k.config.Path, p.Path+"/") || trimtab.Units(p.Raise).Validate() != nil || p.Raise == 0 {
			return nil, errors.Join(trimtab.Invalidf("cgroup %s: parent %q raised to %v cores", k.config.Path, p.Path, p.Raise), f.Close())
		}
		// A parent that is already raised was raised by an earlier process: its baseline is in
		// that process's journal.
		if q, err := k.quota(p.Path); p.Baseline == nil && err == nil && !q.Amount().Equal(trimtab.Units(p.Raise), quantum) {
			v := q.Amount()
			p.Baseline = &v
		}
		k.config.Parents[i] = p
	}
	return k, nil
}

// quantum is the coarsest step of a quota: 1 us in the shortest period.
const quantum = 1.0 / hostfs.MinPeriod

// kind is the format name in what Undo returns.
const kind = "cgroup-cpu/1"

// Reopen opens the knob that undo describes; see [actuator.Reopen].
func Reopen(undo []byte) (*CPU, error) { return actuator.Reopen(kind, undo, Open) }

// Undo describes the knob for Reopen.
func (k *CPU) Undo() []byte { return actuator.UndoOf(kind, k.config) }

// String names version and path.
func (k *CPU) String() string {
	return fmt.Sprintf("cgroup v%d %s", k.root.CgroupVersion(k.config.Path), k.config.Path)
}

// location returns the group's directory with links resolved: the hierarchies of version 1 have more
// than one name.
func location(c *Config) (string, error) {
	dir, err := filepath.EvalSymlinks(filepath.Join(c.Root, c.Path))
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return "", fmt.Errorf("find cgroup %s: %w", c.Path, err)
	}
	return dir, nil
}

// Resource returns "cpu".
func (k *CPU) Resource() string { return trimtab.CPU }

// Close releases the root.
func (k *CPU) Close() error {
	if !k.closed {
		k.shut()
	}
	return k.Files.Close()
}

// Probe returns an error unless the group exists and has the controller.
func (k *CPU) Probe(ctx context.Context) error {
	if err := k.Files.Probe(ctx, "the cpu controller", path.Base(k.file(k.config.Path))); err != nil {
		return err
	}
	if _, err := k.quota(k.config.Path); err != nil {
		return fmt.Errorf("probe cgroup %s: %w", k.config.Path, err)
	}
	return nil
}

// MayWrite returns an error if another manager owns the group, or this process may not write it.
func (k *CPU) MayWrite(ctx context.Context) error {
	return k.Files.MayWrite(ctx, path.Base(k.file(k.config.Path)))
}

// Read returns the quota in force, in cores.
func (k *CPU) Read(ctx context.Context) (trimtab.Amount, error) {
	if err := ctx.Err(); err != nil {
		return trimtab.Amount{}, fmt.Errorf("read cgroup %s: %w", k.config.Path, err)
	}
	q, err := k.quota(k.config.Path)
	if err != nil {
		return trimtab.Amount{}, err
	}
	k.period = q.Period
	k.watch(q, hostfs.BootTime())
	return q.Amount(), nil
}

// quota reads the quota of a group.
func (k *CPU) quota(group string) (hostfs.Quota, error) { return k.root.Quota(group) }

// Nearest rounds to whole microseconds in the period found last, at least
// 1000; for a systemd unit down to whole percents of a core.
func (k *CPU) Nearest(a trimtab.Amount) trimtab.Amount {
	if k.unit != "" {
		return wholePercent(a, k.period)
	}
	return hostfs.Quota{Period: k.period}.With(a).Amount()
}

// Write sets the quota. In version 1 it returns trimtab.ErrRefused, without any effect, if the
// quota of a parent that may not be raised is lower.
func (k *CPU) Write(ctx context.Context, a trimtab.Amount) error {
	if err := errors.Join(ctx.Err(), a.Validate()); err != nil {
		return fmt.Errorf("write cgroup %s: %w", k.config.Path, err)
	}
	if err := k.Owned(); err != nil {
		return err
	}
	now, err := k.quota(k.config.Path)
	if err != nil {
		return err
	}
	k.period = now.Period
	if err := k.unburst(); err != nil {
		return fmt.Errorf("write cgroup %s: %w", k.config.Path, err)
	}
	next := now.With(a)
	// An unlimited child never exceeds its parents, so none needs raising.
	if !a.Unlimited {
		if err := k.raiseParents(ctx, next.Amount()); err != nil {
			return err
		}
	}
	if err := k.set(ctx, k.config.Path, now, a); err != nil {
		return err
	}
	if next.Amount().Less(now.Amount()) || a.Unlimited {
		k.lowerParents(ctx)
	}
	return nil
}

// set sets the quota of a group whose quota is now; for a systemd unit it asks systemd.
func (k *CPU) set(ctx context.Context, group string, now hostfs.Quota, a trimtab.Amount) error {
	if unit := unitOf(k.root, group); unit != "" {
		// systemd does not report a quota that the kernel refuses.
		if err := overBurst(k.root, group, now.With(a)); err != nil {
			return fmt.Errorf("write cgroup %s: %w", group, err)
		}
		return setUnit(ctx, unit, "CPUQuotaPerSecUSec", perSecond(a))
	}
	q := now.With(a)
	text := q.CFSQuota()
	if k.root.CgroupVersion(group) == 2 {
		text = q.CPUMax()
	}
	return whyQuota(k.root, group, q, k.root.Write(k.file(group), text))
}

// file returns the file of a group's quota.
func (k *CPU) file(group string) string {
	if k.root.CgroupVersion(group) == 2 {
		return path.Join(group, "cpu.max")
	}
	return path.Join(group, "cpu.cfs_quota_us")
}
