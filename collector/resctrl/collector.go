package resctrl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/internal/feed"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/internal/rdt"
)

// Source is the source of all samples of this package.
const Source = "resctrl"

// DefaultInterval is how often monitors are read.
const DefaultInterval = 5 * time.Second

// Config says what to read.
type Config struct {
	// Tree is where resctrl is mounted; "": rdt.Root. Open opens it; nil: rdt.Open.
	Tree string
	Open func(root string) (rdt.Files, error)
	// Host is what samples call this host.
	Host string
	// Root is the hierarchy of control groups.
	Root string
	// Targets are the control groups of workloads.
	Targets []Target
	// Interval is the window of a rate; 0: [DefaultInterval].
	Interval time.Duration
	// Bus gets the samples.
	Bus feed.Publisher
	// Metrics and Logger may be nil.
	Metrics *metric.Set
	Logger  *slog.Logger
}

// Target is the control group of one workload, or with a * in Path those of its instances.
type Target = feed.Target

// Collector reads monitors.
type Collector struct {
	config  Config
	files   rdt.Files
	groups  *hostfs.Root // nil: no targets
	targets []hostfs.Follower
	// events are those that this host has.
	events []event
	before *reading
	// told are the instances that had a group at the last reading.
	told  map[key]bool
	lacks []string
	boot  func() time.Duration
	// problem is why the tree could not be read at last.
	problem string
}

// key is one instance of a target.
type key struct {
	target   int
	instance string
	group    string
}

// Open opens the tree. The error is trimtab.ErrUnsupported if the host has no monitors, and says
// what is missing.
func Open(c Config) (*Collector, error) {
	if c.Bus == nil || c.Host == "" {
		return nil, trimtab.Invalidf("collect from resctrl: no bus, or no host")
	}
	if c.Tree == "" {
		c.Tree = rdt.Root
	}
	if c.Open == nil {
		c.Open = rdt.Open
	}
	feed.Fill(&c.Interval, DefaultInterval, &c.Metrics, &c.Logger)
	files, err := c.Open(c.Tree)
	if err != nil {
		return nil, fmt.Errorf("collect from resctrl: %w", err)
	}
	k := &Collector{config: c, files: files, told: map[key]bool{}, boot: hostfs.BootTime}
	if err := k.prepare(); err != nil {
		return nil, fmt.Errorf("collect from resctrl: %w", errors.Join(err, k.Close()))
	}
	return k, nil
}

// prepare finds out which monitors there are.
func (c *Collector) prepare() error {
	has, err := rdt.Monitors(c.files)
	if err != nil {
		return err
	}
	for _, e := range events() {
		if slices.Contains(has, e.file) {
			c.events = append(c.events, e)
		} else {
			c.lacks = append(c.lacks, string(e.quantity)+": the CPU does not monitor "+e.file)
		}
	}
	if len(c.events) == 0 {
		return fmt.Errorf("the CPU monitors neither cache occupancy nor memory bandwidth (flags cqm_occup_llc, cqm_mbm_total, cqm_mbm_local): %w", trimtab.ErrUnsupported)
	}
	if len(c.config.Targets) == 0 || c.config.Root == "" {
		return nil
	}
	if c.groups, err = hostfs.OpenRoot(c.config.Root); err != nil {
		return err
	}
	for _, t := range c.config.Targets {
		c.targets = append(c.targets, hostfs.Follower{Path: t.Path})
	}
	return nil
}

// Lacks lists the monitors that this host does not have.
func (c *Collector) Lacks() []string { return c.lacks }

// Close releases what is open.
func (c *Collector) Close() error {
	err := c.files.Close()
	if c.groups != nil {
		err = errors.Join(err, c.groups.Close())
	}
	return err
}

// Run reads and publishes at every interval until ctx ends; it then returns nil.
func (c *Collector) Run(ctx context.Context) error {
	return feed.Run(ctx, c.config.Interval, c.round)
}

// round reads all groups once, and publishes samples of the host and of each workload.
func (c *Collector) round(ctx context.Context) {
	after, err := c.read()
	c.note(err)
	base := trimtab.Sample{Workload: trimtab.HostItself, Host: c.config.Host, Source: Source, Time: time.Now().Round(0).UTC()}
	if err != nil {
		for _, e := range c.events {
			c.publish(ctx, base, e.quantity, value{missing: unreadable})
		}
		c.before = nil
		return
	}
	for _, e := range c.events {
		c.publish(ctx, base, e.quantity, whole(e, c.before, after))
	}
	told := map[key]bool{}
	for i, t := range c.config.Targets {
		if c.groups == nil {
			break
		}
		found, _ := c.targets[i].Look(c.groups) // who is not there has no value
		for _, f := range found {
			k := key{i, f.Name, c.groupOf(f)}
			if after.groups[k.group] == nil {
				continue
			}
			told[k] = true
			base.Workload, base.Host, base.Instance = t.Workload, t.Host, f.Name
			for _, e := range c.events {
				c.publish(ctx, base, e.quantity, of(e, k.group, c.before, after))
			}
		}
	}
	for k := range c.told {
		if told[k] {
			continue
		}
		base.Workload, base.Host, base.Instance = c.config.Targets[k.target].Workload, c.config.Targets[k.target].Host, k.instance
		for _, e := range c.events {
			c.publish(ctx, base, e.quantity, value{missing: absent}) // which is told once
		}
	}
	c.before, c.told = after, told
}

// groupOf names the resctrl group that trimtab's knobs make for a control group.
func (c *Collector) groupOf(f hostfs.Instance) string {
	id, err := c.groups.Inode(f.Path)
	if err != nil {
		return ""
	}
	return rdt.Group(rdt.Place(c.config.Root, f.Path), id)
}

// read reads the monitors of all groups.
func (c *Collector) read() (*reading, error) {
	names, err := c.files.Dirs("")
	if err != nil {
		return nil, err
	}
	r := &reading{at: c.boot(), groups: map[string]*monitors{}}
	for _, name := range append(names, "") {
		if slices.Contains([]string{"info", "mon_data", "mon_groups"}, name) {
			continue
		}
		m, err := c.monitors(path.Join(name, "mon_data"))
		if errors.Is(err, os.ErrNotExist) && name != "" {
			continue // it was removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		r.groups[name] = m
	}
	return r, nil
}

// monitors reads mon_data of one group: a directory for each cache.
func (c *Collector) monitors(dir string) (*monitors, error) {
	caches, err := c.files.Dirs(dir)
	if err != nil {
		return nil, err
	}
	m := &monitors{counts: map[string]map[string]count{}}
	for _, cache := range caches {
		if !strings.HasPrefix(cache, "mon_L3_") {
			continue // a later kernel may monitor more
		}
		for _, e := range c.events {
			text, err := c.files.Read(path.Join(dir, cache, e.file))
			n := count{missing: unreadable}
			if err == nil {
				n.bytes, n.missing = rdt.ParseMonitor(text)
			}
			if m.counts[e.file] == nil {
				m.counts[e.file] = map[string]count{}
			}
			m.counts[e.file][cache] = n
		}
	}
	return m, nil
}

// note logs when what stops it changes.
func (c *Collector) note(err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if problem != c.problem {
		c.problem = problem
		c.config.Logger.Info("resctrl", "problem", problem)
	}
}

func (c *Collector) publish(ctx context.Context, s trimtab.Sample, q trimtab.Quantity, v value) {
	s.Quantity, s.Value, s.Missing, s.Window = q, v.v, v.missing, trimtab.SecondsOf(v.window)
	if s.Missing != "" {
		s.Value, s.Window = 0, 0
	}
	feed.Publish(ctx, c.config.Bus, c.config.Metrics, c.config.Logger, "trimtab_collector_resctrl_samples_total", &s)
}
