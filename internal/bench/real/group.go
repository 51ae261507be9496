package main

import (
	"context"
	"errors"
	"fmt"
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

// groupPrefix, process id and name make the name of a group.
const groupPrefix = "trimtab-real-"

// shares is the weight of every group of the benchmark, ten times the kernel's
// default (cpu.shares 1024): what else runs on the machine disturbs less.
const shares = 10240

// group is a cgroup with a quota that the benchmark made.
type group struct {
	name  string
	made  *cgroup.Group
	knob  *cgroup.CPU
	dir   string
	usage string
	// match starts the line of usage that counts; "": the file is a number.
	match string
	unit  time.Duration
}

// findRoot returns the directory beneath which groups can be made, or why
// there is none.
func findRoot() (string, error) {
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

// newGroup makes the group with a high weight and without a quota.
func newGroup(root, name string) (*group, error) {
	g := &group{name: groupPrefix + strconv.Itoa(os.Getpid()) + "-" + name}
	var err error
	if g.made, err = cgroup.Create(root, g.name); err != nil {
		return nil, err
	}
	if g.knob, err = cgroup.Open(cgroup.Config{Root: root, Path: g.name}); err != nil {
		return nil, errors.Join(err, g.made.Remove(context.Background()))
	}
	g.dir = filepath.Join(root, g.name)
	g.usage, g.match, g.unit = filepath.Join(g.dir, "cpu.stat"), "usage_usec ", time.Microsecond
	weight, value := "cpu.weight", "1000"
	if _, err := os.Stat(filepath.Join(g.dir, "cpu.shares")); err == nil {
		weight, value = "cpu.shares", strconv.Itoa(shares)
		g.usage, g.match, g.unit = filepath.Join(g.dir, "cpuacct.usage"), "", time.Nanosecond
		if twin := hostfs.Accounting(root); twin != "" {
			g.usage = filepath.Join(twin, g.name, "cpuacct.usage")
		}
	}
	if err := os.WriteFile(filepath.Join(g.dir, weight), []byte(value), 0); err != nil {
		return nil, errors.Join(fmt.Errorf("weigh cgroup %s: %w", g.name, err), g.close())
	}
	return g, nil
}

// set sets the quota, in cores.
func (g *group) set(ctx context.Context, cores float64) error {
	return g.knob.Write(ctx, trimtab.Units(cores))
}

// free takes the quota away.
func (g *group) free(ctx context.Context) error {
	return g.knob.Write(ctx, trimtab.Unlimited())
}

// cores returns the quota; without one, the machine is the limit.
func (g *group) cores(ctx context.Context) (float64, error) {
	a, err := g.knob.Read(ctx)
	if a.Unlimited {
		return float64(runtime.NumCPU()), err
	}
	return a.Value, err
}

// used returns the CPU time that the group has used so far.
func (g *group) used() (time.Duration, error) {
	b, err := os.ReadFile(g.usage)
	if err != nil {
		return 0, fmt.Errorf("read CPU time of %s: %w", g.name, err)
	}
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(line, g.match); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read CPU time of %s: %w", g.name, err)
			}
			return time.Duration(n) * g.unit, nil
		}
	}
	return 0, fmt.Errorf("read CPU time of %s: no %q in %s: %w", g.name, g.match, g.usage, trimtab.ErrUnsupported)
}

// close kills what still runs in the group, and removes it.
func (g *group) close() error {
	if pids, err := os.ReadFile(filepath.Join(g.dir, "cgroup.procs")); err == nil {
		killAll(string(pids))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(g.knob.Close(), g.made.Remove(ctx))
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
func sweep(root string) {
	left, err := filepath.Glob(filepath.Join(root, groupPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		var pid int
		name := filepath.Base(dir)
		if _, err := fmt.Sscanf(name, groupPrefix+"%d-", &pid); err != nil || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue
		}
		if pids, err := os.ReadFile(filepath.Join(dir, "cgroup.procs")); err == nil {
			killAll(string(pids))
		}
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
