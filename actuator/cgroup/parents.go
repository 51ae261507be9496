package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// ancestors returns the parent groups, from the topmost down.
func (k *CPU) ancestors() []string { return ancestors(k.root, k.config.Path) }

// ancestors lists the parent groups of one, without the root of the whole hierarchy: it has no
// limit, and every knob would read it every second.
func ancestors(root *hostfs.Root, group string) []string {
	var up []string
	for p := path.Dir(group); p != "." || !root.Whole(); p = path.Dir(p) {
		up = append([]string{p}, up...)
		if p == "." {
			break
		}
	}
	return up
}

// Status returns the lowest quota of the parent groups, counting those that may be raised at
// their raised value.
func (k *CPU) Status(ctx context.Context) *trimtab.KnobStatus {
	return tightest(k.ancestors(), func(group string) (trimtab.Amount, error) {
		q, err := k.root.QuotaIn(ctx, group)
		v := q.Amount()
		if p := k.parent(group); err == nil && p != nil && v.Less(trimtab.Units(p.Raise)) {
			v = trimtab.Units(p.Raise)
		}
		return v, err
	})
}

// tightest returns the parent group with the lowest limit; nil: none has one. It ignores a group
// whose limit cannot be read.
func tightest(above []string, limit func(group string) (trimtab.Amount, error)) *trimtab.KnobStatus {
	var least *trimtab.KnobStatus
	for _, group := range above {
		v, err := limit(group)
		if err != nil || v.Unlimited || !(v.Value > 0) || least != nil && v.Value >= least.Most {
			continue
		}
		by := "the limit of the group above, " + group
		if group == "." {
			by = "the limit of the root of its groups"
		}
		least = &trimtab.KnobStatus{Most: v.Value, By: by, Caps: true}
	}
	return least
}

// raiseParents raises parents from the top down to make room for v, as far as they may be raised.
// It reads all parents before it writes the first. With version 1 the kernel accepts no quota above
// that of a parent; with version 2 it accepts it, but the parent's quota still limits the group.
func (k *CPU) raiseParents(ctx context.Context, v trimtab.Amount) error {
	var raise []*Parent
	strict := k.root.CgroupVersion(k.config.Path) == 1
	for _, group := range k.ancestors() {
		q, err := k.quota(group)
		if errors.Is(err, os.ErrNotExist) {
			continue // the hierarchy's root has no quota in version 2
		}
		if err != nil {
			return err
		}
		if !q.Amount().Less(v) {
			continue
		}
		p := k.parent(group)
		if strict && (p == nil || p.Raise < v.Value) {
			return fmt.Errorf("raise cgroup %s to %v: its parent %s in %s gives %v: %w",
				k.config.Path, v, group, k.config.Root, q.Amount(), trimtab.ErrRefused)
		}
		if p != nil && q.Amount().Less(trimtab.Units(p.Raise)) {
			raise = append(raise, p)
		}
	}
	for _, p := range raise {
		q, err := k.quota(p.Path)
		if err == nil {
			err = k.set(ctx, p.Path, q, trimtab.Units(p.Raise))
		}
		if err != nil {
			return fmt.Errorf("raise parent first: %w", err)
		}
	}
	return nil
}

// lowerParents restores, from the bottom up, parents that still have the value to which trimtab
// raised them and that this group no longer needs. A parent that another child needs stays raised:
// the kernel refuses the change (version 1), or the last child that is lowered restores it.
func (k *CPU) lowerParents(ctx context.Context) {
	own, err := k.quota(k.config.Path)
	if err != nil {
		return
	}
	up := k.ancestors()
	for i := len(up) - 1; i >= 0; i-- {
		p := k.parent(up[i])
		if p == nil || p.Baseline == nil {
			continue
		}
		q, err := k.quota(p.Path)
		raised := q.With(trimtab.Units(p.Raise))
		needed := !own.Amount().Unlimited && p.Baseline.Less(own.Amount())
		if err != nil || q != raised || needed {
			continue
		}
		// A refusal of the kernel is expected: another child holds more than the baseline.
		_ = k.set(ctx, p.Path, q, *p.Baseline)
	}
}

func (k *CPU) parent(group string) *Parent {
	for i := range k.config.Parents {
		if k.config.Parents[i].Path == group {
			return &k.config.Parents[i]
		}
	}
	return nil
}
