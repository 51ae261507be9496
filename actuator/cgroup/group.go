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

// Group is a control group that trimtab made. With version 1 it includes the groups of the same
// name in other controllers' hierarchies, and in the one that accounts CPU time.
type Group struct {
	name  string
	roots []*hostfs.Root
	// made are the hierarchies in which trimtab created the group.
	made []*hostfs.Root
}

// Create creates the group name with the cpu controller and the given ones. name is a path relative
// to root, and its parent must exist. An existing group is used as it is.
func Create(root, name string, controllers ...string) (*Group, error) {
	if name == "." || name != path.Clean(name) || path.IsAbs(name) || strings.HasPrefix(name, "..") {
		return nil, trimtab.Invalidf("create cgroup %q: want a plain relative path", name)
	}
	g := &Group{name: name}
	if err := g.makeIn(root, append([]string{"cpu"}, controllers...)); err != nil {
		g.discard()
		return nil, fmt.Errorf("create cgroup %s: %w", name, err)
	}
	// Without the accounting hierarchy, which only measures, the limit still works.
	_ = g.makeSibling(hostfs.Accounting(root), "cpuacct")
	for _, controller := range controllers {
		if err := g.makeSibling(hostfs.Sibling(root, controller), controller); err != nil {
			g.discard()
			return nil, fmt.Errorf("create cgroup %s: %w", name, err)
		}
	}
	return g, nil
}

// discard removes the groups that were created, except those in use.
func (g *Group) discard() {
	for _, r := range g.made {
		_ = r.Rmdir(g.name)
	}
	g.close()
}

// makeSibling creates the group in another hierarchy of version 1; "": there is none.
func (g *Group) makeSibling(dir, controller string) error {
	if dir == "" {
		return nil
	}
	n := len(g.roots)
	err := g.makeIn(dir, []string{controller})
	if err != nil && len(g.roots) > n {
		if slices.Contains(g.made, g.roots[n]) {
			_ = g.roots[n].Rmdir(g.name)
			g.made = g.made[:len(g.made)-1]
		}
		g.roots[n].Close()
		g.roots = g.roots[:n]
	}
	return err
}

// makeIn makes the group in the hierarchy at dir.
func (g *Group) makeIn(dir string, controllers []string) error {
	r, err := hostfs.OpenRoot(dir)
	if err != nil {
		return err
	}
	g.roots = append(g.roots, r)
	if err := g.make(r, controllers); err != nil {
		return err
	}
	if r.Filesystem() == hostfs.Cgroup1 && slices.Contains(controllers, "cpuset") {
		return fillCPUSet(r, g.name)
	}
	return nil
}

// fillCPUSet copies the cpuset of the parent to a new group of version 1, which has an empty one,
// in which no process can run.
func fillCPUSet(r *hostfs.Root, group string) error {
	for _, file := range []string{"cpuset.mems", "cpuset.cpus"} {
		own, err := r.Read(path.Join(group, file))
		if errors.Is(err, os.ErrNotExist) {
			return nil // another hierarchy has the cpuset
		}
		if err != nil || strings.TrimSpace(own) != "" {
			return err
		}
		all, err := r.Read(path.Join(path.Dir(group), file))
		if err == nil {
			err = r.Write(path.Join(group, file), strings.TrimSpace(all))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// make creates the group in one hierarchy.
func (g *Group) make(r *hostfs.Root, controllers []string) error {
	if r.Filesystem() == hostfs.Cgroup2 {
		// Without this the group has no files of the controller, such as cpu.max, and the knob's
		// probe says so. If the parent has processes of its own, the kernel accepts this, but then
		// refuses every process in the group.
		control := path.Join(path.Dir(g.name), "cgroup.subtree_control")
		on, err := r.Read(control)
		for _, controller := range controllers {
			if err == nil && !slices.Contains(strings.Fields(on), controller) && !inhabited(r, path.Dir(g.name)) {
				_ = r.Write(control, "+"+controller)
			}
		}
	}
	err := r.Mkdir(g.name)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err == nil {
		g.made = append(g.made, r)
	}
	return err
}

// inhabited reports whether a group of version 2 has processes of its own. Then it may not have
// children with controllers, unless it is the root of the hierarchy.
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

// Remove removes the group. It waits for processes that are just ending, until ctx ends. It is no
// error if the group does not exist.
func (g *Group) Remove(ctx context.Context) error {
	defer g.close()
	for _, r := range slices.Backward(g.roots) {
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

// Writable tries whether groups with a quota can be created below root: it creates one, limits it,
// and removes it.
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
