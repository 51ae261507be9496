package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cfsPeriod is the kernel's default; what a quota is given per.
const cfsPeriod = 100_000

// CgroupPlace runs each service in a cgroup of its own with a CPU quota, under
// a group that it makes and removes.
type CgroupPlace struct {
	launcher *Launcher
	root     *os.Root
	// dir is the demo's group below root; v2 tells the interface files.
	dir    string
	v2     bool
	groups []string
}

// OpenCgroup finds a hierarchy in which this process may make groups with a
// CPU quota: v1's cpu controller, or v2 where cpu is delegated. The error says
// what was tried.
func OpenCgroup(launcher *Launcher) (*CgroupPlace, error) {
	var tried []error
	for _, at := range []struct {
		mount string
		v2    bool
	}{{"/sys/fs/cgroup/cpu", false}, {"/sys/fs/cgroup/cpu,cpuacct", false}, {ownGroup(), true}} {
		p, err := openCgroupAt(launcher, at.mount, at.v2)
		if err == nil {
			return p, nil
		}
		tried = append(tried, err)
	}
	return nil, errors.Join(tried...)
}

// ownGroup is the directory of this process's v2 group: what systemd may have
// delegated.
func ownGroup() string {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "/sys/fs/cgroup"
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return path.Join("/sys/fs/cgroup", rest)
		}
	}
	return "/sys/fs/cgroup"
}

func openCgroupAt(launcher *Launcher, mount string, v2 bool) (*CgroupPlace, error) {
	root, err := os.OpenRoot(mount)
	if err != nil {
		return nil, fmt.Errorf("open cgroup hierarchy: %w", err)
	}
	p := &CgroupPlace{launcher: launcher, root: root, v2: v2, dir: fmt.Sprintf("trimtab-demo-%d", os.Getpid())}
	if err := p.make(p.dir); err != nil {
		root.Close()
		return nil, err
	}
	if v2 {
		// Groups below get the quota only when the controller is handed down.
		if err := p.write(p.dir, "cgroup.subtree_control", "+cpu"); err != nil {
			return nil, errors.Join(err, p.remove())
		}
	}
	probe := path.Join(p.dir, "probe")
	if err := p.make(probe); err != nil {
		return nil, errors.Join(err, p.remove())
	}
	if err := p.setQuota(probe, 0.5); err != nil {
		return nil, errors.Join(err, p.remove())
	}
	return p, nil
}

func (p *CgroupPlace) make(dir string) error {
	if err := p.root.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("make cgroup in %s: %w", p.root.Name(), err)
	}
	p.groups = append(p.groups, dir)
	return nil
}

func (p *CgroupPlace) write(dir, file, value string) error {
	f, err := p.root.OpenFile(path.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("write %s in %s: %w", file, dir, err)
	}
	defer f.Close()
	if _, err := f.WriteString(value); err != nil {
		return fmt.Errorf("write %s %q in %s: %w", file, value, dir, err)
	}
	return nil
}

func (p *CgroupPlace) setQuota(dir string, cores float64) error {
	quota := strconv.Itoa(int(cores*cfsPeriod + 0.5))
	if p.v2 {
		return p.write(dir, "cpu.max", quota+" "+strconv.Itoa(cfsPeriod))
	}
	return p.write(dir, "cpu.cfs_quota_us", quota)
}

// Knob returns KnobCgroup.
func (p *CgroupPlace) Knob() string { return KnobCgroup }

// Hierarchy returns the mount point that handles are relative to.
func (p *CgroupPlace) Hierarchy() string { return p.root.Name() }

// Add makes the service's group with its equal share as quota, and starts its
// components in it. Handle is the group's path below Hierarchy.
func (p *CgroupPlace) Add(ctx context.Context, s *Service) error {
	dir := path.Join(p.dir, s.Name)
	if err := p.make(dir); err != nil {
		return err
	}
	if err := p.Set(ctx, s, s.Equal); err != nil {
		return err
	}
	s.Handle = dir
	for i := range s.Components {
		pid, err := p.launcher.Start(s.Components[i].Args(), 2)
		if err != nil {
			return err
		}
		if err := p.write(dir, "cgroup.procs", strconv.Itoa(pid)); err != nil {
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

// Set writes the quota in cores: what trimtab does otherwise.
func (p *CgroupPlace) Set(_ context.Context, s *Service, cores float64) error {
	return p.setQuota(path.Join(p.dir, s.Name), cores)
}

// Read returns the quota in cores.
func (p *CgroupPlace) Read(_ context.Context, s *Service) (float64, error) {
	dir := path.Join(p.dir, s.Name)
	if p.v2 {
		b, err := p.root.ReadFile(path.Join(dir, "cpu.max"))
		if err != nil {
			return 0, fmt.Errorf("read quota: %w", err)
		}
		var quota, period float64
		if _, err := fmt.Sscan(string(b), &quota, &period); err != nil || period <= 0 {
			return 0, fmt.Errorf("read quota %q of %s: not a number of cores", b, dir)
		}
		return quota / period, nil
	}
	quota, err := p.number(dir, "cpu.cfs_quota_us")
	if err != nil {
		return 0, err
	}
	period, err := p.number(dir, "cpu.cfs_period_us")
	if err != nil {
		return 0, err
	}
	if quota < 0 || period <= 0 {
		return 0, fmt.Errorf("read quota %v of %s: not a number of cores", quota, dir)
	}
	return quota / period, nil
}

func (p *CgroupPlace) number(dir, file string) (float64, error) {
	b, err := p.root.ReadFile(path.Join(dir, file))
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", file, err)
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
	if err != nil {
		return 0, fmt.Errorf("read %s of %s: %w", file, dir, err)
	}
	return v, nil
}

// Close ends the processes and removes the groups, innermost first.
func (p *CgroupPlace) Close() error {
	p.launcher.Close()
	return p.remove()
}

func (p *CgroupPlace) remove() error {
	var failed []error
	for i := len(p.groups) - 1; i >= 0; i-- {
		failed = append(failed, removeGroup(p.root, p.groups[i]))
	}
	p.groups = nil
	_ = p.root.Close() // read only
	return errors.Join(failed...)
}

// removeGroup waits, if it must, for the kernel to let go of ended processes.
func removeGroup(root *os.Root, dir string) error {
	var err error
	for range 100 {
		if err = root.Remove(filepath.FromSlash(dir)); err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("remove cgroup: %w", err)
}
