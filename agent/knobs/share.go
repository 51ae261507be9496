package knobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Above is the parent group of a pool's workloads, whose quota trimtab sets to the pool's capacity
// on this host; the zero Above: there is none. force says to set it even if systemd owns the group.
type Above struct {
	root, Group string
	force       bool
}

// Open opens the quota of that group, or of the group that the configuration names for the fast
// loop; nil: there is none.
func (a Above) Open(cfg *config.Config, kinds []actuator.Kind) (actuator.Knob, error) {
	if a.Group != "" {
		return OpenGroup(kinds, a)
	}
	return FastParent(cfg, kinds)
}

// Obstacle says why the workloads of a pool do not share its CPU time by weight on this host, and
// what to do about it; the zero Obstacle: they do, or are not configured to.
type Obstacle struct {
	Why, Do string
	// Groups says that the obstacle is the layout of the control groups, and not the configuration.
	Groups bool
}

// Log logs the obstacle, if any.
func (o Obstacle) Log(to *slog.Logger) {
	if o.Why != "" {
		to.Info("each workload has a CPU quota of its own", "why", o.Why, "do", o.Do)
	}
}

// Remark tells, for a status, that a workload has a quota of its own although the pool could share
// CPU time by weight if its control groups lay differently; "": it shares, or cannot.
func Remark(cfg *config.Config, kinds []actuator.Kind, host string) string {
	all, err := Of(kinds, cfg, host)
	if err != nil {
		return "" // the knob's own status says so
	}
	if _, no := Share(cfg, kinds, all, host); no.Groups {
		return "it has a CPU quota of its own, and loses what it leaves idle: " + no.Why
	}
	return ""
}

// Share decides whether the pool shares its CPU time by weight on this host, which it does if no
// group outside the pool is affected, and returns the group that carries the limit. Workloads that
// do not share get quotas.
func Share(cfg *config.Config, kinds []actuator.Kind, all []Declared, host string) (Above, Obstacle) {
	members, at, no := sharing(cfg, all, host)
	if no.Why != "" || len(members) == 0 {
		return Above{}, no
	}
	capacity, err := hostfs.CPUs(at.root)
	// With several hosts, each limits the sum of its shares, which may be less than its capacity.
	many := cfg.ManyHosts(host) != ""
	whole := err == nil && cfg.Pool.CPU >= capacity && !many
	if err == nil && many {
		capacity = max(0, capacity-cfg.Actuator.Reserve.Of(trimtab.CPU))
	}
	capacity = min(cfg.Pool.CPU, cmp.Or(capacity, cfg.Pool.CPU))
	if no := shareable(kinds, at, members, !whole); no.Why != "" && !neverCaps(members) {
		return Above{}, no
	}
	if whole {
		at = Above{}
	}
	for _, d := range members {
		d.At.ShareUnit = capacity / float64(len(members))
		for _, t := range d.Like {
			if t.Resource == trimtab.CPU && t.Max < capacity {
				d.At.ShareMost = t.Max
			}
		}
	}
	return at, Obstacle{}
}

// sharing lists the knobs whose workloads are to share the CPU time of the pool by weight, and the
// group above them. It returns none if sharing is not configured, or no knob is set here.
func sharing(cfg *config.Config, all []Declared, host string) (members []*Declared, at Above, no Obstacle) {
	if cfg.Pool.Resource() != trimtab.CPU || cfg.Fast.Acts() {
		return nil, at, no
	}
	at.force = true
	watched, foreign, acts := "", "", false
	for i := range all {
		d := &all[i]
		j := slices.IndexFunc(d.Like, func(t actuator.Target) bool { return t.Resource == trimtab.CPU })
		switch {
		case j < 0:
			continue
		case d.Cap == config.CapAlways:
			return nil, at, no
		case d.Kind != "cgroup" || d.At.High:
			foreign = d.Like[j].Workload
			continue
		case d.Like[j].Mode != trimtab.Act:
			watched = d.Like[j].Workload
		default:
			acts = true
		}
		at.force = at.force && d.At.Force
		members = append(members, d)
	}
	if !acts {
		return nil, at, no
	}
	many := cfg.ManyHosts(host)
	switch {
	case len(cfg.Pool.Shares()) > 1 || cfg.Objective == config.EndToEnd:
		no = Obstacle{"the objective " + cfg.Objective + " decides amounts", "nothing, or choose another objective: docs/objectives.md", false}
	case many != "" && !neverCaps(members):
		no = Obstacle{"the pool may have other hosts (" + many + ")", "nothing, or cap: never, and each host shares by weight: docs/operations.md", false}
	case cfg.Beside.Jobs != nil:
		no = Obstacle{"best-effort jobs run in what the quotas leave (beside.jobs)", "nothing, or take beside.jobs out", false}
	case foreign != "":
		no = Obstacle{foreign + " has a limit of another kind out of the same pool", "give it a pool of its own", false}
	case watched != "":
		no = Obstacle{watched + " is not in mode act, and a limit above would bound it, too", "mode: act for all of the pool, or a pool of its own", false}
	}
	if no.Why != "" {
		return nil, at, no
	}
	at.Group, at.root = path.Dir(members[0].At.Path), members[0].At.Root
	for _, d := range members {
		if path.Dir(d.At.Path) != at.Group || d.At.Root != at.root {
			at.Group = "."
		}
	}
	if at.Group == "." {
		no = Obstacle{"the groups of the workloads have no group of their own in common", view.MakeGroup, true}
	}
	return members, at, no
}

// neverCaps reports whether the configuration demands sharing by weight even if there is an
// obstacle.
func neverCaps(members []*Declared) bool {
	return slices.ContainsFunc(members, func(d *Declared) bool { return d.Cap == config.CapNever })
}

// shareable returns the obstacle, if any, to sharing between the groups of the pool below the group
// above.
func shareable(kinds []actuator.Kind, at Above, members []*Declared, write bool) Obstacle {
	ours := func(g string) bool {
		return slices.ContainsFunc(members, func(d *Declared) bool {
			ok, err := path.Match(hostfs.PlainPattern(d.At.Path), g)
			return ok && err == nil
		})
	}
	strangers, err := cgroup.Beside(at.root, at.Group, ours)
	switch {
	case errors.Is(err, os.ErrNotExist): // the group may still be created
	case err != nil:
		return Obstacle{err.Error(), view.MakeGroup, true}
	case len(strangers) > 0:
		return Obstacle{"the group above them has others, such as " + strangers[0], view.MakeGroup, true}
	case write:
		k, err := OpenGroup(kinds, at)
		if err == nil {
			err = errors.Join(k.MayWrite(context.Background()), k.Close())
		}
		if err != nil {
			return Obstacle{"the group above them cannot be set: " + err.Error(), "mend that; in a unit of systemd: force: true in each knob, or a group below a service with Delegate=yes", true}
		}
	}
	return Obstacle{}
}

// OpenGroup opens the quota of a group.
func OpenGroup(kinds []actuator.Kind, at Above) (actuator.Knob, error) {
	kind, err := actuator.KindOf(kinds, "cgroup")
	if err != nil {
		return nil, err
	}
	return kind.Open(actuator.Location{Root: at.root, Path: at.Group, Force: at.force}, trimtab.CPU)
}

// FastParent opens the parent group that the configuration names for the fast loop; nil: it names
// none.
func FastParent(cfg *config.Config, kinds []actuator.Kind) (actuator.Knob, error) {
	if !cfg.Fast.Acts() || cfg.Fast.Parent == "" || cfg.Pool.Resource() != trimtab.CPU {
		return nil, nil
	}
	root, err := hostfs.CPURoot(cfg.Actuator.CgroupRoot)
	if err != nil {
		return nil, fmt.Errorf("open fast.parent: %w", err)
	}
	k, err := OpenGroup(kinds, Above{root: root, Group: filepath.Clean(cfg.Fast.Parent)})
	if err != nil {
		return nil, fmt.Errorf("open fast.parent: %w", err)
	}
	return k, nil
}
