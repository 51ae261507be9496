package perf

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/internal/feed"
	"github.com/trimtab/trimtab/collector/waits"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/metric"
)

// DefaultInterval is how often counters are read.
const DefaultInterval = 5 * time.Second

// Config says what to count.
type Config struct {
	// Host is what samples call this host.
	Host string
	// Root is the hierarchy of control groups that paths are relative to.
	Root string
	// Counted is the hierarchy that counters go by; "": found, see [Hierarchy].
	Counted string
	// Targets are the groups of workloads.
	Targets []Target
	// Interval is the window of all values; 0: [DefaultInterval].
	Interval time.Duration
	// Helper is the command of the process that counts: one that calls [Confine], then
	// [Serve] with the hierarchy as its root, which is appended as the last argument.
	Helper []string
	// Bus gets the samples.
	Bus feed.Publisher
	// Metrics and Logger may be nil.
	Metrics *metric.Set
	Logger  *slog.Logger
}

// Target is the group of one workload, or with a * in Path those of its instances.
type Target = feed.Target

// place is one of the groups measured, or the host.
type place struct {
	target   int // -1: the host
	instance string
	id       uint64
}

// maxAllThreads is how many threads of all groups are read in a round.
const maxAllThreads = 10_000

// seen is the last reading of a place.
type seen struct {
	path    string
	threads map[int]waits.Thread
	at      time.Duration
}

// Collector has the groups of workloads counted.
type Collector struct {
	config  Config
	root    *hostfs.Root
	counted *hostfs.Root // nil: groups have no counters
	targets []hostfs.Follower
	helper  *helper
	before  map[place]*seen
	lacks   []string
	proc    string
	// problems are why a target, or -1 the counters, cannot be read.
	problems map[int]string
}

// Hierarchy returns the hierarchy whose groups the kernel counts for the groups in root: root
// itself on version 2; on version 1 that of the controller perf_event, else a version 2 hierarchy
// beside it, mounted as unified. "": there is none.
func Hierarchy(root string) string {
	r, err := hostfs.OpenRoot(root)
	if err != nil {
		return ""
	}
	defer r.Close()
	if r.Filesystem() == hostfs.Cgroup2 {
		return root
	}
	for _, name := range []string{"perf_event", "unified"} {
		if twin := hostfs.Twin(root, name); twin != "" {
			return twin
		}
	}
	return ""
}

// Open starts the process that counts. A missing counter is no error: [Collector.Lacks] lists it,
// and run_delay is always read.
func Open(c Config) (*Collector, error) {
	if c.Bus == nil || c.Host == "" || c.Root == "" || len(c.Helper) == 0 {
		return nil, trimtab.Invalidf("count events: no bus, host, cgroups or command")
	}
	feed.Fill(&c.Interval, DefaultInterval, &c.Metrics, &c.Logger)
	if c.Counted == "" {
		c.Counted = Hierarchy(c.Root)
	}
	root, err := hostfs.OpenRoot(c.Root)
	if err != nil {
		return nil, fmt.Errorf("count events: %w", err)
	}
	k := &Collector{config: c, root: root, before: map[place]*seen{}, proc: "/proc", problems: map[int]string{}}
	if c.Counted != "" {
		if k.counted, err = hostfs.OpenRoot(c.Counted); err != nil {
			return nil, fmt.Errorf("count events: %w", errors.Join(err, root.Close()))
		}
	} else {
		k.lacks = append(k.lacks, "counters of cgroups: no hierarchy of version 2 or perf_event is mounted beside "+c.Root)
	}
	for _, t := range c.Targets {
		k.targets = append(k.targets, hostfs.Follower{Path: t.Path})
	}
	started := c.Metrics.Counter("trimtab_collector_perf_starts_total").Inc
	k.helper = &helper{command: append(append([]string{}, c.Helper...), c.Counted), logger: c.Logger, started: started}
	k.begin()
	return k, nil
}

// begin starts the process for the first time, to say what it cannot count.
func (c *Collector) begin() {
	if err := c.helper.start(context.Background()); err != nil {
		c.lacks = append(c.lacks, c.helper.back(err).Error())
		return
	}
	able := c.helper.able
	c.config.Logger.Info("performance counters", "software", orNone(able.Software), "hardware", orNone(able.Hardware))
	c.lacks = append(c.lacks, able.Lacks...)
	if len(able.Hardware) == 0 {
		c.lacks = append(c.lacks, "cpi, mpki, rpki: no hardware counters; run_delay (schedstat), throttled (cgroup) and pressure (psi) tell of waiting instead")
	}
}

// Lacks lists the counters that this host does not have.
func (c *Collector) Lacks() []string { return c.lacks }

// Close ends the process that counts, and releases the hierarchies.
func (c *Collector) Close() error {
	c.helper.end()
	err := c.root.Close()
	if c.counted != nil {
		err = errors.Join(err, c.counted.Close())
	}
	return err
}

// Run reads and publishes at every interval until ctx ends; it then returns nil.
func (c *Collector) Run(ctx context.Context) error {
	return feed.Run(ctx, c.config.Interval, c.round)
}

// round counts everything once.
func (c *Collector) round(ctx context.Context) {
	host := place{target: -1}
	places, now := []place{host}, map[place]*seen{host: {}}
	for i := range c.targets {
		found, err := c.targets[i].Look(c.root)
		c.note(i, err)
		for _, f := range found {
			p := place{i, f.Name, f.ID}
			places, now[p] = append(places, p), &seen{path: f.Path}
		}
	}
	intervals := c.count(ctx, places, now)
	if ctx.Err() != nil {
		return
	}
	threads := &waits.Threads{Proc: c.proc}
	threads.Begin(maxAllThreads)
	for _, p := range places {
		waits, window := c.waits(threads, p, now[p])
		i := intervals[p]
		if c.counted != nil && c.counted.Path() != c.root.Path() && outside(i, c.before[p], now[p]) {
			i = failed(elsewhere)
		}
		c.tell(ctx, p, i, waits, window)
	}
	for p := range c.before {
		if now[p] == nil { // it is gone, which is told once
			c.tell(ctx, p, failed(absent), value{missing: absent}, 0)
		}
	}
	c.before = now
}

// failed is an interval of which nothing is known.
func failed(why string) interval {
	return interval{Software: set{Missing: why}, Hardware: set{Missing: why}}
}

// count asks the counting process for the counters of all places whose group is in the counted
// hierarchy.
func (c *Collector) count(ctx context.Context, places []place, now map[place]*seen) map[place]interval {
	out := make(map[place]interval, len(places))
	var asked []place
	var groups []group
	for _, p := range places {
		g, why := c.groupOf(p, now[p].path)
		if why != "" {
			out[p] = failed(why)
			continue
		}
		if len(groups) == MaxGroups {
			out[p] = failed(tooMany)
			continue
		}
		asked, groups = append(asked, p), append(groups, g)
	}
	intervals, err := c.helper.ask(ctx, groups)
	c.note(-1, err)
	for i, p := range asked {
		if err != nil {
			out[p] = failed(unanswered)
			continue
		}
		out[p] = intervals[i]
	}
	return out
}

// groupOf returns the group to count for a place, or why there is none.
func (c *Collector) groupOf(p place, path string) (group, string) {
	switch {
	case p.target < 0:
		return group{}, ""
	case c.counted == nil:
		return group{}, notCounted
	}
	id, err := c.counted.Inode(path)
	switch {
	case errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENODEV):
		return group{}, absent
	case err != nil:
		return group{}, unreadable
	}
	return group{strings.TrimPrefix(path, "/"), id}, ""
}

// waits reads the threads of a place.
func (c *Collector) waits(threads *waits.Threads, p place, now *seen) (value, time.Duration) {
	if p.target < 0 {
		return value{missing: notCounted}, 0
	}
	var err error
	now.at = hostfs.BootTime()
	now.threads, err = threads.Read(c.root, now.path, false)
	switch {
	case errors.Is(err, waits.ErrTooMany), errors.Is(err, waits.ErrLater):
		return value{missing: tooMany}, 0
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENODEV):
		return value{missing: absent}, 0
	case err != nil:
		return value{missing: unreadable}, 0
	}
	was := c.before[p]
	if was == nil {
		return value{missing: first}, 0
	}
	return delay(was.threads, now.threads), now.at - was.at
}

// slack is by how much CPU time two clocks of one group may differ: a tick on each of some CPUs,
// and the time between the readings.
const slack = 100 * time.Millisecond

// outside reports whether tasks of a group are outside of the group of the same path whose
// counters were read: they ran for longer than that group counted. The counts of a hierarchy that
// nobody uses are then unknown, not 0.
func outside(i interval, before, now *seen) bool {
	if before == nil || i.Software.Missing != "" || len(i.Software.Counts) <= taskClock {
		return false
	}
	ran, _ := waits.Between(before.threads, now.threads)
	return ran > 2*i.Software.Counts[taskClock]+float64(slack)
}

// tell publishes the samples of one place.
func (c *Collector) tell(ctx context.Context, p place, i interval, waits value, window time.Duration) {
	base := trimtab.Sample{Workload: trimtab.HostItself, Host: c.config.Host, Source: Source, Time: time.Now().Round(0).UTC()}
	if p.target >= 0 {
		t := c.config.Targets[p.target]
		base.Workload, base.Host, base.Instance = t.Workload, t.Host, p.instance
	}
	for _, m := range values(i, p.target < 0) {
		base.Window = trimtab.SecondsOf(i.Window)
		c.publish(ctx, base, m)
	}
	if p.target >= 0 {
		base.Source, base.Window = SourceDelay, trimtab.SecondsOf(window)
		c.publish(ctx, base, measured{trimtab.RunDelay, waits})
	}
}

func (c *Collector) publish(ctx context.Context, s trimtab.Sample, m measured) {
	s.Quantity, s.Value, s.Missing = m.q, m.v, m.missing
	if s.Missing != "" {
		s.Value, s.Window = 0, 0
	}
	feed.Publish(ctx, c.config.Bus, c.config.Metrics, c.config.Logger, "trimtab_collector_perf_samples_total", &s)
}

// note logs when what stops a target, or the counters, changes.
func (c *Collector) note(i int, err error) {
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if problem == c.problems[i] {
		return
	}
	c.problems[i] = problem
	name := "counters"
	if i >= 0 {
		name = c.config.Targets[i].Workload
	}
	c.config.Logger.Info("perf", "of", name, "problem", problem)
}
