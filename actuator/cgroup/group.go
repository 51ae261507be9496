package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Group is a control group that trimtab made, with its twin in the hierarchy
// that accounts CPU time where version 1 keeps that apart.
type Group struct {
	name  string
	roots []*hostfs.Root
}

// Create makes the group name, a path relative to root whose parent exists. A
// group that is there already is taken as it is.
func Create(root, name string) (*Group, error) {
	if name == "." || name != path.Clean(name) || path.IsAbs(name) || strings.HasPrefix(name, "..") {
		return nil, trimtab.Invalidf("create cgroup %q: want a plain relative path", name)
	}
	g := &Group{name: name}
	for i, dir := range []string{root, hostfs.Accounting(root)} {
		if dir == "" {
			continue
		}
		r, err := hostfs.OpenRoot(dir)
		if err == nil {
			g.roots = append(g.roots, r)
			err = g.make(r)
		}
		// The twin only measures: without it the limit still works.
		if err != nil && i == 0 {
			g.close()
			return nil, fmt.Errorf("create cgroup %s: %w", name, err)
		}
		if err != nil && r != nil {
			g.roots = g.roots[:1]
			r.Close()
		}
	}
	return g, nil
}

// make makes the group in one hierarchy.
func (g *Group) make(r *hostfs.Root) error {
	if r.Filesystem() == hostfs.Cgroup2 {
		// Without this the group has no cpu.max, and the knob's probe says so.
		// Where processes live in the parent itself the kernel would not
		// refuse, but then let no process into the group.
		control := path.Join(path.Dir(g.name), "cgroup.subtree_control")
		if on, err := r.Read(control); err == nil && !slices.Contains(strings.Fields(on), "cpu") && !inhabited(r, path.Dir(g.name)) {
			_ = r.Write(control, "+cpu")
		}
	}
	if err := r.Mkdir(g.name); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// inhabited reports whether processes live in a group of version 2 itself, of
// which only the hierarchy's root may have controlled children then.
func inhabited(r *hostfs.Root, group string) bool {
	if ok, err := r.Exists(path.Join(group, "cgroup.type")); err == nil && !ok {
		return false // the hierarchy's root
	}
	processes, err := r.Read(path.Join(group, "cgroup.procs"))
	return err == nil && processes != ""
}

// Path returns the group's path relative to its root, for [Config].
func (g *Group) Path() string { return g.name }

// AddProcess moves the process with all its threads into the group.
func (g *Group) AddProcess(pid int) error {
	for _, r := range g.roots {
		if err := r.Write(path.Join(g.name, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("add process %d: %w", pid, err)
		}
	}
	return nil
}

// Remove removes the group, waiting for processes that are just ending until
// ctx ends. A group that is gone is no error.
func (g *Group) Remove(ctx context.Context) error {
	defer g.close()
	for _, r := range g.roots {
		for {
			err := r.Rmdir(g.name)
			if err == nil || errors.Is(err, os.ErrNotExist) {
				break
			}
			if !errors.Is(err, syscall.EBUSY) {
				return err
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%w: %w", err, ctx.Err())
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	return nil
}

func (g *Group) close() {
	for _, r := range g.roots {
		r.Close()
	}
	g.roots = nil
}

// Writable tries whether groups with a quota can be made beneath root: it
// makes one, limits it, and removes it.
func Writable(root string) error {
	name := "trimtab-probe-" + strconv.Itoa(os.Getpid())
	g, err := Create(root, name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	k, err := Open(Config{Root: root, Path: name})
	if err == nil {
		err = errors.Join(k.Probe(ctx), k.Write(ctx, trimtab.Units(0.5)), k.Close())
	}
	return errors.Join(err, g.Remove(ctx))
}
