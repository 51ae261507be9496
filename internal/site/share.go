package site

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/config"
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

// share has the CPU time of the pool shared by weight on this host where that can be done
// without touching what is not the pool's, and returns the group that carries the limit. What
// does not share has quotas.
func share(cfg *config.Config, kinds []actuator.Kind, all []knobConfig) above {
	at, _ := sharing(cfg, kinds, all)
	return at
}

// sharing is share, with why there is none; "": nobody asks for it.
func sharing(cfg *config.Config, kinds []actuator.Kind, all []knobConfig) (above, string) {
	if cfg.Pool.Resource() != trimtab.CPU || cfg.Fast.Acts() {
		return above{}, ""
	}
	var members []*knobConfig
	never, watched := false, ""
	at := above{force: true}
	for i := range all {
		d := &all[i]
		j := slices.IndexFunc(d.like, func(t actuator.Target) bool { return t.Resource == trimtab.CPU })
		if d.kind != "cgroup" || d.at.High || j < 0 {
			continue
		}
		if d.cap == "" || d.cap == config.CapAlways {
			return above{}, ""
		}
		at.force = at.force && d.at.Force
		if never = never || d.cap == config.CapNever; d.like[j].Mode != trimtab.Act {
			watched = d.like[j].Workload
		}
		members = append(members, d)
	}
	switch {
	case len(members) == 0:
		return above{}, ""
	case cfg.NATS.URL != "":
		return above{}, "the pool may have other hosts (nats.url)"
	case watched != "":
		return above{}, watched + " is not in mode act, and a limit above would bound it, too"
	}
	at.group, at.root = path.Dir(members[0].at.Path), members[0].at.Root
	for _, d := range members {
		if path.Dir(d.at.Path) != at.group || d.at.Root != at.root {
			return above{}, "the groups of the workloads have no group of their own in common"
		}
	}
	capacity, err := hostfs.CPUs(at.root)
	whole := err == nil && cfg.Pool.CPU >= capacity
	capacity = min(cfg.Pool.CPU, cmp.Or(capacity, cfg.Pool.CPU))
	if why := shareable(kinds, at, members, !whole); why != "" && !never {
		return above{}, why
	}
	if whole {
		at = above{}
	}
	for _, d := range members {
		d.at.ShareUnit = capacity / float64(len(members))
	}
	return at, ""
}

// shareable says why the groups of the pool cannot share below the group above; "": they can.
func shareable(kinds []actuator.Kind, at above, members []*knobConfig, write bool) string {
	if at.group == "." {
		return "the groups of the workloads have no group of their own in common"
	}
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
		return err.Error()
	case len(strangers) > 0:
		return "the group above them has others, such as " + strangers[0]
	case write:
		k, err := openGroup(kinds, at)
		if err == nil {
			err = errors.Join(k.MayWrite(context.Background()), k.Close())
		}
		if err != nil {
			return "the group above them cannot be set: " + err.Error()
		}
	}
	return ""
}

// openGroup opens the quota of a group.
func openGroup(kinds []actuator.Kind, at above) (actuator.Knob, error) {
	kind, err := kindOf(kinds, "cgroup")
	if err != nil {
		return nil, err
	}
	return kind.Open(actuator.Location{Root: at.root, Path: at.group, Force: at.force}, trimtab.CPU)
}
