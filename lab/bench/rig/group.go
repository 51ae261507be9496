package rig

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/internal/demo"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Group is a cgroup with a quota that the benchmark made.
type Group struct {
	Name  string
	made  *cgroup.Group
	knob  *cgroup.CPU
	dir   string
	usage string
	// match starts the line of usage that counts; "": the file is a number.
	match string
	unit  time.Duration
	// weight is the file of the group's weight, usual what stands there by default.
	weight string
	usual  float64
	// also are the group's directories in other hierarchies of version 1.
	also []string
}

// FindRoot returns the directory beneath which groups can be made, or why
// there is none.
func FindRoot() (string, error) {
	roots, err := demo.CgroupRoots()
	if err != nil {
		return "", err
	}
	var tried []error
	for _, root := range roots {
		err := cgroup.Writable(root)
		if err == nil {
			return root, nil
		}
		tried = append(tried, fmt.Errorf("try %s: %w", root, err))
	}
	return "", errors.Join(tried...)
}

// NewGroup makes the group prefix-PID-name with a weight, of which 100 is the kernel's
// default, and without a quota.
func NewGroup(root, prefix, name string, weight int) (*Group, error) {
	g := &Group{Name: prefix + strconv.Itoa(os.Getpid()) + "-" + name}
	var err error
	if g.made, err = cgroup.Create(root, g.Name); err != nil {
		return nil, err
	}
	if g.knob, err = cgroup.Open(cgroup.Config{Root: root, Path: g.Name}); err != nil {
		return nil, errors.Join(err, g.made.Remove(context.Background()))
	}
	g.dir = filepath.Join(root, g.Name)
	g.usage, g.match, g.unit = filepath.Join(g.dir, "cpu.stat"), "usage_usec ", time.Microsecond
	file, value := "cpu.weight", strconv.Itoa(weight)
	g.usual = 100
	if _, err := os.Stat(filepath.Join(g.dir, "cpu.shares")); err == nil {
		file, value, g.usual = "cpu.shares", strconv.Itoa(weight*1024/100), 1024
		g.usage, g.match, g.unit = filepath.Join(g.dir, "cpuacct.usage"), "", time.Nanosecond
		if twin := hostfs.Accounting(root); twin != "" {
			g.usage = filepath.Join(twin, g.Name, "cpuacct.usage")
		}
	}
	g.weight = filepath.Join(g.dir, file)
	if err := os.WriteFile(g.weight, []byte(value), 0); err != nil {
		return nil, errors.Join(fmt.Errorf("weigh cgroup %s: %w", g.Name, err), g.Close())
	}
	return g, nil
}

// Set sets the quota, in cores.
func (g *Group) Set(ctx context.Context, cores float64) error {
	return g.knob.Write(ctx, trimtab.Units(cores))
}

// Free takes the quota away.
func (g *Group) Free(ctx context.Context) error {
	return g.knob.Write(ctx, trimtab.Unlimited())
}

// Cores returns the quota; without one, the machine is the limit.
func (g *Group) Cores(ctx context.Context) (float64, error) {
	a, err := g.knob.Read(ctx)
	if a.Unlimited {
		return float64(runtime.NumCPU()), err
	}
	return a.Value, err
}

// Weigh sets the group's weight against those beside it, over the kernel's default.
func (g *Group) Weigh(weight float64) error {
	if err := os.WriteFile(g.weight, strconv.AppendInt(nil, max(1, int64(math.Round(weight*g.usual))), 10), 0); err != nil {
		return fmt.Errorf("weigh cgroup %s: %w", g.Name, err)
	}
	return nil
}

// Weight returns the group's weight against those beside it, over the kernel's default.
func (g *Group) Weight() (float64, error) {
	b, err := os.ReadFile(g.weight)
	if err != nil {
		return 0, fmt.Errorf("read weight of %s: %w", g.Name, err)
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
	if err != nil {
		return 0, fmt.Errorf("read weight of %s: %w", g.Name, err)
	}
	return v / g.usual, nil
}

// Idle sets whether the group runs only while nobody beside it wants a CPU. The kernel forgets
// the weight of an idle group, so that weight is what it has afterwards.
func (g *Group) Idle(on bool, weight float64) error {
	file := filepath.Join(filepath.Dir(g.weight), "cpu.idle")
	if on {
		if err := os.WriteFile(file, []byte("1"), 0); err != nil {
			return fmt.Errorf("make cgroup %s idle: %w", g.Name, err)
		}
		return nil
	}
	if was, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(was)) == "0" {
		return nil // an older kernel has no idle groups
	}
	if err := os.WriteFile(file, []byte("0"), 0); err != nil {
		return fmt.Errorf("end idleness of cgroup %s: %w", g.Name, err)
	}
	return g.Weigh(weight)
}

// Used returns the CPU time that the group has used so far.
func (g *Group) Used() (time.Duration, error) {
	b, err := os.ReadFile(g.usage)
	if err != nil {
		return 0, fmt.Errorf("read CPU time of %s: %w", g.Name, err)
	}
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(line, g.match); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read CPU time of %s: %w", g.Name, err)
			}
			return time.Duration(n) * g.unit, nil
		}
	}
	return 0, fmt.Errorf("read CPU time of %s: no %q in %s: %w", g.Name, g.match, g.usage, trimtab.ErrUnsupported)
}

// killAll kills the processes of a cgroup.procs file, but never this one.
func killAll(pids string) {
	for _, field := range strings.Fields(pids) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// sweep removes what a benchmark that was killed left behind: groups named
// after a process that is gone, with what still runs in them.
func sweep(root, prefix string) {
	left, err := filepath.Glob(filepath.Join(root, prefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		var pid int
		name := filepath.Base(dir)
		if _, err := fmt.Sscanf(name, prefix+"%d-", &pid); err != nil || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue
		}
		sweepTwins(root, name)
		if g, err := cgroup.Create(root, name); err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			_ = g.Remove(ctx)
			cancel()
		}
	}
}

// memberships returns the directories of the groups that this process is in,
// in the hierarchies that the benchmark's groups have. A line of /proc/self/cgroup is
// "number:controllers:path" (cgroups(7)); version 2 has no controllers there.
func memberships() ([]string, error) {
	mount, err := hostfs.CPUHierarchy()
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("find own cgroup: %w", err)
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) < 3 {
			continue
		}
		for _, controller := range strings.Split(f[1], ",") {
			switch controller {
			case "cpu":
				out = append(out, filepath.Join(mount, f[2]))
			case "cpuacct":
				if twin := hostfs.Accounting(mount); twin != "" {
					out = append(out, filepath.Join(twin, f[2]))
				}
			case "":
				if _, err := os.Stat(filepath.Join(mount, "cgroup.controllers")); err == nil {
					out = append(out, filepath.Join(mount, f[2]))
				}
			}
		}
	}
	return out, nil
}

// enter moves this process into groups of several hierarchies.
func enter(groups []string) error {
	var failed []error
	for _, dir := range groups {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, os.Getpid()), 0); err != nil {
			failed = append(failed, fmt.Errorf("return to cgroup %s: %w", dir, err))
		}
	}
	return errors.Join(failed...)
}

// Dir is the group's directory in the hierarchy of the CPU controller.
func (g *Group) Dir() string { return g.dir }
