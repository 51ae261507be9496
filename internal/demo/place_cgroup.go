package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// cgroupPlace runs each service in a control group of its own with a CPU quota, below one for all
// of them, made beneath Root and removed by Close.
type cgroupPlace struct {
	turned
	root     string
	launcher *Launcher
	// groups are the groups that were created, the parent first; above is the parent's quota.
	groups []*cgroup.Group
	above  *cgroup.CPU
	// services are the added services, with the weights of their groups.
	services []*Service
	weights  []*cgroup.Weight
}

// openCgroup finds a directory beneath which this process may make groups with a CPU quota:
// version 1's cpu controller, or this process's own version 2 group if it is delegated. The error
// says what was tried.
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
			p := &cgroupPlace{turned: turned{}, root: root, launcher: launcher}
			if err = p.open(); err == nil {
				return p, nil
			}
			err = errors.Join(err, p.Close())
		}
		tried = append(tried, fmt.Errorf("try %s: %w", root, err))
	}
	return nil, errors.Join(tried...)
}

// open makes the group for all services.
func (p *cgroupPlace) open() error {
	group, err := cgroup.Create(p.root, fmt.Sprintf("%s%d-pool", groupPrefix, os.Getpid()))
	if err != nil {
		return err
	}
	p.groups = append(p.groups, group)
	p.above, err = cgroup.Open(cgroup.Config{Root: p.root, Path: group.Path()})
	return err
}

// groupPrefix and process id begin the name of the group for all services.
const groupPrefix = "trimtab-demo-"

// sweep removes the groups of demo processes that were killed. The kernel keeps groups that are in
// use.
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
		below, _ := filepath.Glob(filepath.Join(root, name, "*", "cgroup.procs"))
		for _, file := range below {
			remove(root, path.Join(name, filepath.Base(filepath.Dir(file))))
		}
		remove(root, name)
	}
}

// remove removes an unused group.
func remove(root, name string) {
	if g, err := cgroup.Create(root, name); err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		_ = g.Remove(ctx)
		cancel()
	}
}

// CgroupRoots lists where this process may be allowed to make groups: the hierarchy of version
// 1's cpu controller; on version 2 its own group and its parent, where no processes need to be
// moved.
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
	group, err := cgroup.Create(p.root, path.Join(p.groups[0].Path(), s.Name))
	if err != nil {
		return err
	}
	p.groups = append(p.groups, group)
	s.Handle = group.Path()
	weight, err := cgroup.OpenWeight(cgroup.Config{Root: p.root, Path: group.Path()})
	if err != nil {
		return err
	}
	p.services, p.weights = append(p.services, s), append(p.weights, weight)
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

// capacity is the sum of the equal shares.
func (p *cgroupPlace) capacity() (sum float64) {
	for _, s := range p.services {
		sum += s.Equal
	}
	return sum
}

// Has returns the quota of a service, or, while the group above has one, the service's share of
// it by weight.
func (p *cgroupPlace) Has(ctx context.Context, s *Service) (float64, error) {
	above, err := p.above.Read(ctx)
	if err != nil {
		return 0, err
	}
	if above.Unlimited {
		return p.Read(ctx, s)
	}
	own, sum := 0.0, 0.0
	for i, other := range p.services {
		weight, err := p.weights[i].Read(ctx)
		if err != nil {
			return 0, err
		}
		if sum += weight.Value; other == s {
			own = weight.Value
		}
	}
	return above.Value * own / sum, nil
}

// Release sets the parent's quota before it removes those of the services.
func (p *cgroupPlace) Release(ctx context.Context) error {
	if err := p.above.Write(ctx, trimtab.Units(p.capacity())); err != nil {
		return err
	}
	for _, s := range p.services {
		if err := p.turned[s.Name].Write(ctx, trimtab.Unlimited()); err != nil {
			return err
		}
	}
	return nil
}

// Bind sets the equal shares before it lifts the quota above.
func (p *cgroupPlace) Bind(ctx context.Context) error {
	for _, s := range p.services {
		if err := p.Set(ctx, s, s.Equal); err != nil {
			return err
		}
	}
	return p.above.Write(ctx, trimtab.Unlimited())
}

// Close ends the processes and removes the groups, the one above last.
func (p *cgroupPlace) Close() error {
	p.launcher.Close()
	failed := []error{p.turned.close()}
	for _, w := range p.weights {
		failed = append(failed, w.Close())
	}
	if p.above != nil {
		failed = append(failed, p.above.Close())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, g := range slices.Backward(p.groups) {
		failed = append(failed, g.Remove(ctx))
	}
	p.groups, p.weights, p.above = nil, nil, nil
	return errors.Join(failed...)
}
