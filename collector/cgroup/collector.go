package cgroup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/metric"
)

// DefaultInterval is how often groups are read.
const DefaultInterval = 5 * time.Second

// Config says which groups to read.
type Config struct {
	// Root is the hierarchy with the cpu controller, or a group in it.
	Root string
	// Accounting is the hierarchy in which version 1 accounts CPU time for the groups in Root; "":
	// Root, or cpuacct if that is mounted beside it.
	Accounting string
	Targets    []Target
	// Interval is the window of usage; 0: [DefaultInterval].
	Interval time.Duration
	// Remark is a remark for people on each group; "": none.
	Remark string
	// Bus gets the samples.
	Bus poll.Publisher
	// Metrics and Logger may be nil.
	Metrics *metric.Set
	Logger  *slog.Logger
}

// Target is the group of one workload, or those of its instances. A pattern needs a host.
type Target = poll.Target

// several reports whether a target is a pattern.
func several(t Target) bool { return strings.Contains(t.Path, "*") }

// group is the state of one group.
type group struct {
	hostfs.Instance
	before  *Reading
	failing string
	// seen is the round in which it was found last.
	seen uint64
	// suspect is the number of further rounds in which its waiting is measured; threads is the last
	// reading of its threads.
	suspect int
	threads *threads
	// manyThreads and manySockets are the rounds before which they are not looked at, since there
	// are more than are read.
	manyThreads, manySockets uint64
	// remarked says that the last check made a remark on it; counted is its CPU time at that check.
	remarked bool
	counted  time.Duration
}

// Collector reads groups.
type Collector struct {
	config      Config
	root, usage *hostfs.Root
	// members is a second handle of root for the lists of processes and threads, which would
	// otherwise displace the files that root keeps open for every round.
	members *hostfs.Root
	// groups are the groups of each target, by the name of the instance; "" for a target that is
	// not a pattern.
	groups []map[string]*group
	// failing is why the instances of each target cannot be found; again is when to look for them
	// next.
	failing []string
	again   []time.Duration
	rounds  uint64
	// above has the readings of parent groups in this round.
	above map[string]Reading
	// waiter measures waiting; censusAt is the time of the last check for remarks.
	waiter   waiter
	censusAt time.Duration
}

// Open opens the hierarchy. A missing group is no error: it may appear.
func Open(c Config) (*Collector, error) {
	if c.Bus == nil {
		return nil, trimtab.Invalidf("collect from cgroups: no bus")
	}
	for _, t := range c.Targets {
		if t.Workload == "" || t.Path == "" {
			return nil, trimtab.Invalidf("collect from cgroups: workload %q in group %q: none may be empty", t.Workload, t.Path)
		}
		if several(t) && t.Host == "" {
			return nil, trimtab.Invalidf("collect from cgroups: instances of %q on no host", t.Workload)
		}
	}
	poll.Fill(&c.Interval, DefaultInterval, &c.Metrics, &c.Logger)
	c.Accounting = cmp.Or(c.Accounting, hostfs.Accounting(c.Root))
	c.Accounting = cmp.Or(c.Accounting, c.Root)
	var roots [3]*hostfs.Root
	for i, dir := range []string{c.Root, c.Accounting, c.Root} {
		var err error
		if roots[i], err = hostfs.OpenRoot(dir); err != nil {
			for _, open := range roots[:i] {
				err = errors.Join(err, open.Close())
			}
			return nil, fmt.Errorf("collect from cgroups: %w", err)
		}
		roots[i].KeepOpen()
	}
	groups := make([]map[string]*group, len(c.Targets))
	for i, t := range c.Targets {
		groups[i] = map[string]*group{}
		if !several(t) {
			groups[i][""] = &group{Instance: hostfs.Instance{Path: t.Path}}
		}
	}
	return &Collector{above: map[string]Reading{}, config: c, root: roots[0], usage: roots[1], members: roots[2], groups: groups, failing: make([]string, len(c.Targets)), again: make([]time.Duration, len(c.Targets))}, nil
}

// Close releases the hierarchy.
func (c *Collector) Close() error {
	return errors.Join(c.root.Close(), c.usage.Close(), c.members.Close())
}

// Run reads and publishes at every interval until ctx ends; it then returns
// nil.
func (c *Collector) Run(ctx context.Context) error {
	return poll.Every(ctx, c.config.Interval, c.round)
}

// round reads every group once.
func (c *Collector) round(ctx context.Context) {
	c.rounds++
	clear(c.above)
	c.waiter.begin()
	for i := range c.config.Targets {
		if several(c.config.Targets[i]) {
			c.find(ctx, i)
		}
	}
	all, from := c.all()
	for k := range all {
		p := all[(from+k)%len(all)]
		t, g := p.target, p.group
		at := hostfs.BootTime()
		after, err := read(c.root, c.usage, g.Path)
		if after.At = at; err == nil {
			c.bounded(&after, g.Path)
		}
		c.note(t, g, err)
		samples := Samples(t.Workload, time.Now().Round(0).UTC(), g.before, &after, err)
		c.publishGroup(ctx, t, g, append(c.wait(g, samples), samples...))
		g.before = &after
		if err != nil {
			g.before = nil
		}
	}
	c.census(ctx, all)
}

// location is a group of a target.
type location struct {
	target *Target
	group  *group
}

// all returns all groups in order, and the index at which the round begins.
func (c *Collector) all() (all []location, from int) {
	for i := range c.config.Targets {
		for _, name := range slices.Sorted(maps.Keys(c.groups[i])) {
			g := c.groups[i][name]
			if g.Path == c.waiter.next {
				from = len(all)
			}
			all = append(all, location{&c.config.Targets[i], g})
		}
	}
	c.waiter.next = ""
	return all, from
}

// bounded finds the least quota of the groups above, and counts its periods. The root of a
// whole hierarchy has none.
func (c *Collector) bounded(r *Reading, of string) {
	for up := path.Dir(of); up != "." || !c.root.Whole(); up = path.Dir(up) {
		above, known := c.above[up]
		if !known {
			if stat, err := c.root.Read(path.Join(up, "cpu.stat")); err == nil {
				if above, _, err = ParseStat(stat); err == nil {
					above.Quota, err = c.root.Quota(up)
				}
				known = err == nil
			}
			if !known {
				return
			}
			c.above[up] = above
		}
		if v := above.Quota.Amount(); v.Less(r.Most) {
			r.Most, r.Above, r.Stopped, r.By = v, above.Periods, above.Throttled, up
		}
		if up == "." {
			return
		}
	}
}

// find updates the groups of a pattern. One that is gone is reported once as absent; while the
// pattern cannot be read, they stay.
func (c *Collector) find(ctx context.Context, i int) {
	t, groups, now := &c.config.Targets[i], c.groups[i], hostfs.BootTime()
	if now < c.again[i] {
		return
	}
	found, err := c.root.Instances(t.Path)
	if errors.Is(err, trimtab.ErrRefused) {
		c.again[i] = now + time.Minute // counting a million groups takes long
	}
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	if problem != c.failing[i] {
		c.failing[i] = problem
		c.config.Logger.Warn("cgroups", "workload", t.Workload, "path", t.Path, "problem", problem)
	}
	if err != nil {
		return
	}
	for _, f := range found {
		g := groups[f.Name]
		if g == nil || g.ID != f.ID {
			g = &group{Instance: f}
			groups[f.Name] = g
		}
		g.seen = c.rounds
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		if g := groups[name]; g.seen != c.rounds {
			c.note(t, g, os.ErrNotExist)
			c.publishGroup(ctx, t, g, Samples(t.Workload, time.Now().Round(0).UTC(), g.before, nil, os.ErrNotExist))
			delete(groups, name)
			c.root.Forget(g.Path)
			c.usage.Forget(g.Path)
			c.members.Forget(g.Path)
		}
	}
}

// publishGroup publishes the samples of a group.
func (c *Collector) publishGroup(ctx context.Context, t *Target, g *group, samples []*trimtab.Sample) {
	for _, s := range samples {
		s.Host, s.Instance = t.Host, g.Name
		c.publish(ctx, s)
	}
}

// note logs when a group begins or ceases to fail.
func (c *Collector) note(t *Target, g *group, err error) {
	now := ""
	if err != nil {
		now = err.Error()
	}
	if now != g.failing {
		g.failing = now
		c.config.Logger.Info("cgroup", "workload", t.Workload, "path", g.Path, "err", err)
	}
}

func (c *Collector) publish(ctx context.Context, s *trimtab.Sample) {
	poll.Publish(ctx, c.config.Bus, c.config.Metrics, c.config.Logger, s, "trimtab_collector_cgroup_samples_total")
}
