package site

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// above is the group above those of a pool's workloads, whose quota is set to what the pool
// may give on this host; the zero above: there is none. force: also where systemd owns it.
type above struct {
	root, group string
	force       bool
}

// open opens the group above, or the one that the file names for the fast loop; nil: there is
// none.
func (a above) open(cfg *config.Config, kinds []actuator.Kind) (actuator.Knob, error) {
	if a.group != "" {
		return openGroup(kinds, a)
	}
	return fastParent(cfg, kinds)
}

// obstacle says why the CPU time of a pool is not shared by weight on this host, and what to do
// about it; the zero obstacle: nothing stands in the way, or nobody asks for it.
type obstacle struct {
	why, do string
	// groups: it is how the control groups lie, and not what the file asks for.
	groups bool
}

// say logs it, where there is one.
func (o obstacle) say(to *slog.Logger) {
	if o.why != "" {
		to.Info("each workload has a CPU quota of its own", "why", o.why, "do", o.do)
	}
}

// quotaRemark says of each workload that it has a quota of its own where the pool could share by
// weight if its groups were others; "": it does, or nobody can change that.
func quotaRemark(cfg *config.Config, kinds []actuator.Kind, host string) string {
	all, err := knobsOf(kinds, cfg, host)
	if err != nil {
		return "" // said of the knob
	}
	if _, no := share(cfg, kinds, all, host); no.groups {
		return "it has a CPU quota of its own, and loses what it leaves idle: " + no.why
	}
	return ""
}

// share has the CPU time of the pool shared by weight on this host where that can be done
// without touching what is not the pool's, and returns the group that carries the limit. What
// does not share has quotas.
func share(cfg *config.Config, kinds []actuator.Kind, all []knobConfig, host string) (above, obstacle) {
	members, at, no := sharing(cfg, all, host)
	if no.why != "" || len(members) == 0 {
		return above{}, no
	}
	capacity, err := hostfs.CPUs(at.root)
	// Of several hosts each gives the sum of its shares, which may be less than it has.
	many := manyHosts(cfg, host) != ""
	whole := err == nil && cfg.Pool.CPU >= capacity && !many
	if err == nil && many {
		capacity = max(0, capacity-cfg.Actuator.Reserve.Of(trimtab.CPU))
	}
	capacity = min(cfg.Pool.CPU, cmp.Or(capacity, cfg.Pool.CPU))
	if no := shareable(kinds, at, members, !whole); no.why != "" && !neverCaps(members) {
		return above{}, no
	}
	if whole {
		at = above{}
	}
	for _, d := range members {
		d.at.ShareUnit = capacity / float64(len(members))
		for _, t := range d.like {
			if t.Resource == trimtab.CPU && t.Max < capacity {
				d.at.ShareMost = t.Max
			}
		}
	}
	return at, obstacle{}
}

// sharing lists the knobs whose workloads would share the CPU time of the pool, and the group
// above them, by what the file says; none: nobody asks for it, or none is set here.
func sharing(cfg *config.Config, all []knobConfig, host string) (members []*knobConfig, at above, no obstacle) {
	if cfg.Pool.Resource() != trimtab.CPU || cfg.Fast.Acts() {
		return nil, at, no
	}
	at.force = true
	watched, foreign, acts := "", "", false
	for i := range all {
		d := &all[i]
		j := slices.IndexFunc(d.like, func(t actuator.Target) bool { return t.Resource == trimtab.CPU })
		switch {
		case j < 0:
			continue
		case d.cap == config.CapAlways:
			return nil, at, no
		case d.kind != "cgroup" || d.at.High:
			foreign = d.like[j].Workload
			continue
		case d.like[j].Mode != trimtab.Act:
			watched = d.like[j].Workload
		default:
			acts = true
		}
		at.force = at.force && d.at.Force
		members = append(members, d)
	}
	if !acts {
		return nil, at, no
	}
	many := manyHosts(cfg, host)
	switch {
	case len(cfg.Pool.Shares()) > 1 || cfg.Objective == config.EndToEnd:
		no = obstacle{"the objective " + cfg.Objective + " decides amounts", "nothing, or choose another objective: docs/objectives.md", false}
	case many != "" && !neverCaps(members):
		no = obstacle{"the pool may have other hosts (" + many + ")", "nothing, or cap: never, and each host shares by weight: docs/operations.md", false}
	case cfg.Colocate != nil:
		no = obstacle{"best-effort jobs run in what the quotas leave (colocate)", "nothing, or take colocate out", false}
	case foreign != "":
		no = obstacle{foreign + " has a limit of another kind out of the same pool", "give it a pool of its own", false}
	case watched != "":
		no = obstacle{watched + " is not in mode act, and a limit above would bound it, too", "mode: act for all of the pool, or a pool of its own", false}
	}
	if no.why != "" {
		return nil, at, no
	}
	at.group, at.root = path.Dir(members[0].at.Path), members[0].at.Root
	for _, d := range members {
		if path.Dir(d.at.Path) != at.group || d.at.Root != at.root {
			at.group = "."
		}
	}
	if at.group == "." {
		no = obstacle{"the groups of the workloads have no group of their own in common", view.MakeGroup, true}
	}
	return members, at, no
}

// neverCaps reports whether the file asks for shares although something speaks against them.
func neverCaps(members []*knobConfig) bool {
	return slices.ContainsFunc(members, func(d *knobConfig) bool { return d.cap == config.CapNever })
}

// shareable says why the groups of the pool cannot share below the group above.
func shareable(kinds []actuator.Kind, at above, members []*knobConfig, write bool) obstacle {
	ours := func(g string) bool {
		return slices.ContainsFunc(members, func(d *knobConfig) bool {
			ok, err := path.Match(hostfs.PlainPattern(d.at.Path), g)
			return ok && err == nil
		})
	}
	strangers, err := cgroup.Beside(at.root, at.group, ours)
	switch {
	case errors.Is(err, os.ErrNotExist): // it may come
	case err != nil:
		return obstacle{err.Error(), view.MakeGroup, true}
	case len(strangers) > 0:
		return obstacle{"the group above them has others, such as " + strangers[0], view.MakeGroup, true}
	case write:
		k, err := openGroup(kinds, at)
		if err == nil {
			err = errors.Join(k.MayWrite(context.Background()), k.Close())
		}
		if err != nil {
			return obstacle{"the group above them cannot be set: " + err.Error(), "mend that; in a unit of systemd: force: true in each knob, or a group below a service with Delegate=yes", true}
		}
	}
	return obstacle{}
}

// openGroup opens the quota of a group.
func openGroup(kinds []actuator.Kind, at above) (actuator.Knob, error) {
	kind, err := kindOf(kinds, "cgroup")
	if err != nil {
		return nil, err
	}
	return kind.Open(actuator.Location{Root: at.root, Path: at.group, Force: at.force}, trimtab.CPU)
}
