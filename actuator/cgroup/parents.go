package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/trimtab/trimtab"
)

// ancestors lists the groups above, from the root's own down.
func (k *CPU) ancestors() []string {
	var up []string
	for p := path.Dir(k.config.Path); ; p = path.Dir(p) {
		up = append([]string{p}, up...)
		if p == "." {
			return up
		}
	}
}

// raiseParents makes room for v from the top down. It looks at all parents
// before it writes to the first.
func (k *CPU) raiseParents(ctx context.Context, v trimtab.Amount) error {
	var raise []*Parent
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
		if p == nil || p.Raise < v.Value {
			return fmt.Errorf("raise cgroup %s to %v: its parent %s in %s gives %v: %w",
				k.config.Path, v, group, k.config.Root, q.Amount(), trimtab.ErrRefused)
		}
		raise = append(raise, p)
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

// lowerParents gives back, from the bottom up, parents that still stand where
// trimtab raised them and that this group no longer needs. One that another
// child still needs stays: the kernel refuses (version 1), or the last child
// that is lowered takes it back.
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
		// A refusal of the kernel is an answer, not a fault: another child
		// holds more than the baseline.
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
