package cgroup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/metric"
)

// DefaultInterval is how often groups are read.
const DefaultInterval = 5 * time.Second

// Config says which groups to read.
type Config struct {
	// Root is the hierarchy with the cpu controller, or a group in it.
	Root string
	// Accounting is where version 1 accounts CPU time for the groups in Root;
	// "": Root, or cpuacct where that is mounted beside it.
	Accounting string
	Targets    []Target
	// Interval is the window of usage; 0: [DefaultInterval].
	Interval time.Duration
	// Bus gets the samples.
	Bus publisher
	// Metrics and Logger may be nil.
	Metrics *metric.Set
	Logger  *slog.Logger
}

// publisher is the part of a bus in use.
type publisher interface {
	Publish(ctx context.Context, v trimtab.Value) error
}

// Target is the group of one workload.
type Target struct {
	Workload string
	// Path is relative to Root.
	Path string
}

// Collector reads groups.
type Collector struct {
	config      Config
	root, usage *hostfs.Root
	before      []*Reading
	failing     []string
}

// Open opens the hierarchy. A group that is not there is no error: it may come.
func Open(c Config) (*Collector, error) {
	if c.Bus == nil {
		return nil, trimtab.Invalidf("collect from cgroups: no bus")
	}
	for _, t := range c.Targets {
		if t.Workload == "" || t.Path == "" {
			return nil, trimtab.Invalidf("collect from cgroups: workload %q in group %q: none may be empty", t.Workload, t.Path)
		}
	}
	if c.Interval <= 0 {
		c.Interval = DefaultInterval
	}
	if c.Metrics == nil {
		c.Metrics = metric.NewSet()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Accounting == "" {
		c.Accounting = hostfs.Accounting(c.Root)
	}
	if c.Accounting == "" {
		c.Accounting = c.Root
	}
	root, err := hostfs.OpenRoot(c.Root)
	if err != nil {
		return nil, fmt.Errorf("collect from cgroups: %w", err)
	}
	usage, err := hostfs.OpenRoot(c.Accounting)
	if err != nil {
		root.Close()
		return nil, fmt.Errorf("collect from cgroups: %w", err)
	}
	return &Collector{
		config: c, root: root, usage: usage,
		before: make([]*Reading, len(c.Targets)), failing: make([]string, len(c.Targets)),
	}, nil
}

// Close releases the hierarchy.
func (c *Collector) Close() error { return errors.Join(c.root.Close(), c.usage.Close()) }

// Run reads and publishes at every interval until ctx ends; it then returns
// nil.
func (c *Collector) Run(ctx context.Context) error {
	tick := time.NewTicker(c.config.Interval)
	defer tick.Stop()
	for {
		c.round(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// round reads every group once.
func (c *Collector) round(ctx context.Context) {
	for i, t := range c.config.Targets {
		at := hostfs.BootTime()
		after, err := read(c.root, c.usage, t.Path)
		after.At = at
		c.note(i, err)
		for _, s := range Samples(t.Workload, time.Now().Round(0).UTC(), c.before[i], &after, err) {
			c.publish(ctx, s)
		}
		c.before[i] = &after
		if err != nil {
			c.before[i] = nil
		}
	}
}

// note logs when a group begins or ceases to fail.
func (c *Collector) note(i int, err error) {
	now := ""
	if err != nil {
		now = err.Error()
	}
	if now != c.failing[i] {
		c.failing[i] = now
		c.config.Logger.Info("cgroup", "workload", c.config.Targets[i].Workload, "path", c.config.Targets[i].Path, "err", err)
	}
}

func (c *Collector) publish(ctx context.Context, s *trimtab.Sample) {
	result := "ok"
	if s.Missing != "" {
		result = s.Missing
	}
	c.config.Metrics.Counter("trimtab_collector_cgroup_samples_total", result).Inc()
	// Samples may be lost; what comes next matters more.
	if err := c.config.Bus.Publish(ctx, s); err != nil && ctx.Err() == nil {
		c.config.Logger.Warn("publish sample", "workload", s.Workload, "err", err)
	}
}
