package psi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/internal/feed"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/metric"
)

// Source is the source of all samples of this package.
const Source = "psi"

// DefaultInterval is how often files are read.
const DefaultInterval = 5 * time.Second

// The reasons why a value is missing; they are the labels of the metric, too.
const (
	absent     = "absent"
	unreadable = "unreadable"
	first      = "first reading"
	reset      = "counter reset"
	// untold: the kernel has a line of zeros for it, so that programs find one.
	untold = "not told of a whole host"
)

// Config says what to read.
type Config struct {
	// Pressure is the directory of the host's files; "": /proc/pressure.
	Pressure string
	// Host is what samples call this host.
	Host string
	// Root is the hierarchy of control groups; "": none are read.
	Root string
	// Targets are the groups of workloads.
	Targets []Target
	// Interval is the window of a share; 0: [DefaultInterval].
	Interval time.Duration
	// Bus gets the samples.
	Bus feed.Publisher
	// Metrics and Logger may be nil.
	Metrics *metric.Set
	Logger  *slog.Logger
}

// Target is the group of one workload, or with a * in Path those of its instances.
type Target = feed.Target

// resource is a resource that tasks wait for.
type resource struct {
	name       string
	some, full trimtab.Quantity
}

func resources() []resource {
	return []resource{
		{"cpu", trimtab.PressureCPUSome, trimtab.PressureCPUFull},
		{"memory", trimtab.PressureMemorySome, trimtab.PressureMemoryFull},
		{"io", trimtab.PressureIOSome, trimtab.PressureIOFull},
	}
}

// reading is one file at one time since the host booted.
type reading struct {
	Pressure
	at time.Duration
}

// place is one of the groups measured, or the host.
type place struct {
	target   int // -1: the host
	instance string
	id       uint64
}

// Collector reads pressure files.
type Collector struct {
	config   Config
	host     *hostfs.Root
	groups   *hostfs.Root // nil: they have no pressure
	targets  []hostfs.Follower
	before   map[place]map[string]*reading
	problems map[int]string
	lacks    []string
}

// Open opens the files. The error is trimtab.ErrUnsupported where the host has none.
func Open(c Config) (*Collector, error) {
	if c.Bus == nil || c.Host == "" {
		return nil, trimtab.Invalidf("collect pressure: no bus, or no host")
	}
	if c.Pressure == "" {
		c.Pressure = "/proc/pressure"
	}
	feed.Fill(&c.Interval, DefaultInterval, &c.Metrics, &c.Logger)
	host, err := hostfs.OpenRoot(c.Pressure)
	if err == nil {
		_, err = host.Read("cpu")
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.EOPNOTSUPP) {
		err = fmt.Errorf("no pressure in %s (CONFIG_PSI, boot option psi=1): %w", c.Pressure, trimtab.ErrUnsupported)
	}
	if err != nil {
		if host != nil {
			err = errors.Join(err, host.Close())
		}
		return nil, fmt.Errorf("collect pressure: %w", err)
	}
	k := &Collector{config: c, host: host, before: map[place]map[string]*reading{}, problems: map[int]string{}}
	return k, k.openGroups()
}

// openGroups opens the hierarchy where its groups have pressure files. The root of
// version 2 has them only since Linux 5.2 and never in a container, so its kind counts.
func (c *Collector) openGroups() error {
	if c.config.Root == "" || len(c.config.Targets) == 0 {
		return nil
	}
	root, err := hostfs.OpenRoot(c.config.Root)
	if err != nil {
		return errors.Join(fmt.Errorf("collect pressure: %w", err), c.host.Close())
	}
	if root.Filesystem() == hostfs.Cgroup1 {
		c.lacks = append(c.lacks, "pressure of cgroups: they are of version 1, which has none")
		return root.Close()
	}
	c.groups = root
	for _, t := range c.config.Targets {
		c.targets = append(c.targets, hostfs.Follower{Path: t.Path})
	}
	return nil
}

// Lacks lists what this host does not have.
func (c *Collector) Lacks() []string { return c.lacks }

// Close releases the files.
func (c *Collector) Close() error {
	err := c.host.Close()
	if c.groups != nil {
		err = errors.Join(err, c.groups.Close())
	}
	return err
}

// Run reads and publishes at every interval until ctx ends; it then returns nil.
func (c *Collector) Run(ctx context.Context) error {
	return feed.Run(ctx, c.config.Interval, c.round)
}

// round reads everything once.
func (c *Collector) round(ctx context.Context) {
	now := map[place]map[string]*reading{}
	c.look(ctx, now, place{target: -1}, c.host, func(r resource) string { return r.name })
	for i := range c.targets {
		found, err := c.targets[i].Look(c.groups)
		c.note(i, err)
		for _, f := range found {
			c.look(ctx, now, place{i, f.Name, f.ID}, c.groups, func(r resource) string { return path.Join(f.Path, r.name+".pressure") })
		}
	}
	for p := range c.before {
		if now[p] == nil { // it is gone, which is told once
			for _, r := range resources() {
				c.tell(ctx, p, r, nil, nil, os.ErrNotExist)
			}
		}
	}
	c.before = now
}

// look reads the files of one place.
func (c *Collector) look(ctx context.Context, now map[place]map[string]*reading, p place, root *hostfs.Root, file func(resource) string) {
	readings := map[string]*reading{}
	for _, r := range resources() {
		after := &reading{at: hostfs.BootTime()}
		text, err := root.Read(file(r))
		if err == nil {
			after.Pressure, err = Parse(text)
		}
		c.tell(ctx, p, r, c.before[p][r.name], after, err)
		if err == nil {
			readings[r.name] = after
		}
	}
	now[p] = readings
}

// tell publishes the samples of one file.
func (c *Collector) tell(ctx context.Context, p place, r resource, before, after *reading, err error) {
	base := trimtab.Sample{Workload: trimtab.HostItself, Host: c.config.Host, Source: Source, Time: time.Now().Round(0).UTC()}
	if p.target >= 0 {
		base.Workload, base.Host, base.Instance = c.config.Targets[p.target].Workload, c.config.Targets[p.target].Host, p.instance
	}
	for _, s := range samples(base, r, before, after, err) {
		feed.Publish(ctx, c.config.Bus, c.config.Metrics, c.config.Logger, "trimtab_collector_psi_samples_total", s)
	}
}

// note logs when what stops a target changes.
func (c *Collector) note(i int, err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if problem != c.problems[i] {
		c.problems[i] = problem
		c.config.Logger.Info("pressure", "workload", c.config.Targets[i].Workload, "problem", problem)
	}
}

// samples makes the samples of one file: from two readings in order, or from the error that
// prevented one. full is left out if the kernel does not report it.
func samples(base trimtab.Sample, r resource, before, after *reading, err error) (all []*trimtab.Sample) {
	for _, of := range []struct {
		q    trimtab.Quantity
		full bool
	}{{r.some, false}, {r.full, true}} {
		s := base
		s.Quantity = of.q
		// On a whole host a task always runs while another waits for a CPU: the value there is 0
		// for ever since Linux 5.13 (kernel/sched/psi.c, psi_show).
		whole := of.q == trimtab.PressureCPUFull && base.Workload == trimtab.HostItself
		switch {
		case errors.Is(err, os.ErrNotExist):
			s.Missing = absent
		case err != nil:
			s.Missing = unreadable
		case before == nil:
			s.Missing = first
		default:
			now, then := after.Some, before.Some
			if of.full {
				now, then = after.Full, before.Full
			}
			switch {
			case now == nil:
				continue
			case whole:
				s.Missing = untold
			default:
				fill(&s, now, then, after.at-before.at)
			}
		}
		all = append(all, &s)
	}
	return all
}

// fill sets the share of a window in which tasks waited.
func fill(s *trimtab.Sample, now, then *Stall, window time.Duration) {
	switch {
	case then == nil:
		s.Missing = first
	case now.Total < then.Total || window <= 0:
		s.Missing = reset
	default:
		s.Window = trimtab.SecondsOf(window)
		// The kernel's totals are as of its last update, up to 2 s ago: a share may
		// seem to be above 1.
		s.Value = min(1, (now.Total-then.Total).Seconds()/window.Seconds())
	}
}
