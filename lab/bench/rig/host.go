package rig

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Host is the part of this machine that a bench uses: a hierarchy in which it makes
// groups, one for itself and one for what decides over the groups that it measures.
type Host struct {
	// Root is the directory of the hierarchy; Prefix begins the names of all groups.
	Root, Prefix string
	// Own has this process, and with it the load generator. Control has trimtab and what
	// else decides.
	Own, Control *Group
	// before are the groups that this process was in.
	before []string
}

// OpenHost removes what a bench of the same prefix left behind that was killed, makes both
// groups with a weight, and moves this process into its own. After an error everything is
// as before.
func OpenHost(prefix string, weight int) (h *Host, err error) {
	root, err := FindRoot()
	if err != nil {
		return nil, fmt.Errorf("find a cgroup to make groups in (root, or a delegated subtree, is needed): %w", err)
	}
	sweep(root, prefix)
	h = &Host{Root: root, Prefix: prefix}
	defer func(opened *Host) {
		if err != nil {
			err = errors.Join(err, opened.Close())
		}
	}(h)
	if h.Own, err = h.Group("own", weight); err != nil {
		return nil, err
	}
	if h.before, err = memberships(); err != nil {
		return nil, err
	}
	if err = h.Own.AddProcess(os.Getpid()); err != nil {
		return nil, err
	}
	if h.Control, err = h.Group("control", weight); err != nil {
		return nil, err
	}
	return h, nil
}

// Group makes a group at the root, as [NewGroup] does.
func (h *Host) Group(name string, weight int) (*Group, error) {
	return NewGroup(h.Root, h.Prefix, name, weight)
}

// Close returns this process to where it was, and removes both groups.
func (h *Host) Close() error {
	var failed []error
	if h.Control != nil {
		failed = append(failed, h.Control.Close())
	}
	if h.Own != nil {
		failed = append(failed, enter(h.before), h.Own.Close())
	}
	return errors.Join(failed...)
}

// Used returns the CPU time that groups have used so far, together.
func Used(groups ...*Group) (sum time.Duration, err error) {
	for _, g := range groups {
		v, err := g.Used()
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}
