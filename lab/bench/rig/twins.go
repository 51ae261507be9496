package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab/internal/hostfs"
)

// twins are the controllers of version 1 that a group joins with [Group.Everywhere].
func twins() []string { return []string{"freezer", "memory", "cpuset"} }

// Everywhere makes the group in the other hierarchies of version 1 too, so that it
// can be frozen, and its memory and CPUs limited. In version 2 it is there already.
func (g *Group) Everywhere() error {
	for _, controller := range twins() {
		root := hostfs.Sibling(filepath.Dir(g.dir), controller)
		if root == "" {
			continue
		}
		dir := filepath.Join(root, g.Name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("make cgroup %s of %s: %w", g.Name, controller, err)
		}
		g.also = append(g.also, dir)
		if controller != "cpuset" {
			continue
		}
		// A new group has neither, and lets nobody in.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			b, err := os.ReadFile(filepath.Join(root, file))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, file), b, 0)
			}
			if err != nil {
				return fmt.Errorf("make cgroup %s of %s: %w", g.Name, controller, err)
			}
		}
	}
	return nil
}

// freezer returns the file that stops the group, and what is written to stop it and
// to let it go on; "": there is none.
func freezer(dir string, also []string) (file, stop, run string) {
	if _, err := os.Stat(filepath.Join(dir, "cgroup.freeze")); err == nil {
		return filepath.Join(dir, "cgroup.freeze"), "1", "0"
	}
	for _, d := range also {
		if _, err := os.Stat(filepath.Join(d, "freezer.state")); err == nil {
			return filepath.Join(d, "freezer.state"), "FROZEN", "THAWED"
		}
	}
	return "", "", ""
}

// Freeze stops every process of the group, or lets them go on.
func (g *Group) Freeze(stop bool) error {
	file, value, run := freezer(g.dir, g.also)
	if file == "" {
		return fmt.Errorf("freeze %s: no freezer: %w", g.Name, errors.ErrUnsupported)
	}
	if !stop {
		value = run
	}
	for range 100 {
		err := os.WriteFile(file, []byte(value), 0)
		if err != nil {
			return fmt.Errorf("freeze %s: %w", g.Name, err)
		}
		// Version 1 asks each process once, and one in vfork does not stop then.
		now, err := os.ReadFile(file)
		if err != nil || strings.TrimSpace(string(now)) != "FREEZING" {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// Kill kills every process of the group, also one that is frozen, and says whether
// there was one. It leaves the group not frozen: version 1 ends nobody who is.
func (g *Group) Kill() bool {
	killed := false
	// A process may fork meanwhile.
	for range 50 {
		b, err := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
		if err != nil || strings.TrimSpace(string(b)) == "" {
			break
		}
		killed = true
		killAll(string(b))
		_ = g.Freeze(false)
		time.Sleep(5 * time.Millisecond)
	}
	return killed
}

// AddProcess moves the process with all its threads into the group.
func (g *Group) AddProcess(pid int) error {
	for _, dir := range g.also {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, pid), 0); err != nil {
			return fmt.Errorf("add process %d to %s: %w", pid, dir, err)
		}
	}
	return g.made.AddProcess(pid)
}

// Close kills what still runs in the group, and removes it.
func (g *Group) Close() error {
	g.Kill()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(g.knob.Close(), g.made.Remove(ctx), removeAll(ctx, g.also))
}

// removeAll removes the directories of groups, waiting for processes that are just
// ending until ctx ends.
func removeAll(ctx context.Context, dirs []string) error {
	var failed []error
	for _, dir := range dirs {
		for {
			err := os.Remove(dir)
			if err == nil || errors.Is(err, os.ErrNotExist) {
				break
			}
			if !errors.Is(err, syscall.EBUSY) || ctx.Err() != nil {
				failed = append(failed, fmt.Errorf("remove cgroup: %w", err))
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return errors.Join(failed...)
}

// sweepTwins ends what a killed benchmark left behind frozen, and removes the
// group's directories beside that in root.
func sweepTwins(root, name string) {
	g := &Group{Name: name, dir: filepath.Join(root, name)}
	for _, controller := range twins() {
		if twin := hostfs.Sibling(root, controller); twin != "" {
			g.also = append(g.also, filepath.Join(twin, name))
		}
	}
	g.Kill()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = removeAll(ctx, g.also)
}
