package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// cgroupPlace runs each service in a control group of its own with a CPU
// quota, made beneath Root and removed by Close.
type cgroupPlace struct {
	turned
	root     string
	launcher *Launcher
	groups   []*cgroup.Group
}

// openCgroup finds a directory beneath which this process may make groups
// with a CPU quota: version 1's cpu controller, or this process's own group of
// version 2 where that is delegated. The error says what was tried.
func openCgroup(launcher *Launcher) (*cgroupPlace, error) {
	roots, err := CgroupRoots()
	if err != nil {
		return nil, err
	}
	var tried []error
	for _, root := range roots {
		err := cgroup.Writable(root)
		if err == nil {
			sweep(root)
			return &cgroupPlace{turned: turned{}, root: root, launcher: launcher}, nil
		}
		tried = append(tried, fmt.Errorf("try %s: %w", root, err))
	}
	return nil, errors.Join(tried...)
}

// groupPrefix, process id and service name a group.
const groupPrefix = "trimtab-demo-"

// sweep removes what a demo that was killed left: groups of a process that is
// gone. Those that somebody still uses cannot be removed, and stay.
func sweep(root string) {
	names, err := filepath.Glob(filepath.Join(root, groupPrefix+"*"))
	if err != nil {
		return
	}
	for _, name := range names {
		var pid int
		name = filepath.Base(name)
		if _, err := fmt.Sscanf(name, groupPrefix+"%d-", &pid); err != nil || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue
		}
		if g, err := cgroup.Create(root, name); err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			_ = g.Remove(ctx)
			cancel()
		}
	}
}

// CgroupRoots lists where this process may be allowed to make groups: the hierarchy
// of version 1's cpu controller; in version 2 its own group and the one around
// it, where processes need not be in the way.
func CgroupRoots() ([]string, error) {
	mount, err := hostfs.CPUHierarchy()
	if err != nil {
		return nil, err
	}
	root, err := hostfs.OpenRoot(mount)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if root.Filesystem() != hostfs.Cgroup2 {
		return []string{mount}, nil
	}
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("find own cgroup: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		if own, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			own = path.Join(mount, own)
			return []string{own, path.Dir(own)}, nil
		}
	}
	return nil, fmt.Errorf("find own cgroup in %s: %w", mount, trimtab.ErrUnsupported)
}

func (p *cgroupPlace) Knob() string { return KnobCgroup }

func (p *cgroupPlace) Root() string { return p.root }

// Add makes the service's group with its equal share as quota, and starts its
// components in it. Handle is the group's path below Root.
func (p *cgroupPlace) Add(ctx context.Context, s *Service) error {
	group, err := cgroup.Create(p.root, fmt.Sprintf("%s%d-%s", groupPrefix, os.Getpid(), s.Name))
	if err != nil {
		return err
	}
	p.groups = append(p.groups, group)
	s.Handle = group.Path()
	knob, err := cgroup.Open(cgroup.Config{Root: p.root, Path: group.Path()})
	if err != nil {
		return err
	}
	p.turned[s.Name] = knob
	if err := p.Set(ctx, s, s.Equal); err != nil {
		return err
	}
	for i := range s.Components {
		pid, err := p.launcher.Start(s.Components[i].Args(), 2)
		if err != nil {
			return err
		}
		if err := group.AddProcess(pid); err != nil {
			return err
		}
	}
	for i := range s.Components {
		if err := awaitReady(ctx, s.Components[i].Listen); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the processes and removes the groups.
func (p *cgroupPlace) Close() error {
	p.launcher.Close()
	failed := []error{p.turned.close()}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, g := range p.groups {
		failed = append(failed, g.Remove(ctx))
	}
	p.groups = nil
	return errors.Join(failed...)
}
