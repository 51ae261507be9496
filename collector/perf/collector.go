package perf

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/collector/waits"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/quantity"
)

// Source returns the source that counts hardware and software events for this host and its control
// groups.
func Source() poll.Source { return from("") }

// from counts the groups of a hierarchy; "": found, see [Hierarchy].
func from(counted string) poll.Source {
	return poll.Source{Name: "perf", About: "performance counters, and how long threads waited for a CPU", Key: "perf", Grouped: true, Interval: 5 * time.Second,
		Quantities: []quantity.Quantity{quantity.CPI, quantity.MPKI, quantity.RPKI, quantity.TaskClock, quantity.ContextSwitches, quantity.PageFaults, quantity.Migrations, quantity.RunDelay},
		Open:       func(c poll.Config) (poll.Reader, error) { return open(counted, c) }}
}

// host returns the group that stands for the whole host.
func host() poll.Group { return poll.Group{} }

// maxAllThreads is the largest number of threads of all groups that are read in a round.
const maxAllThreads = 10_000

// seen is the last reading of a place.
type seen struct {
	threads map[int]waits.Thread
	at      time.Duration
}

// reader has the groups of workloads counted.
type reader struct {
	root        *hostfs.Root // nil: no groups
	counted     *hostfs.Root // nil: groups have no counters
	helper      *helper
	before      map[poll.Group]*seen
	unavailable []string
	proc        string
	logger      *slog.Logger
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
		if twin := hostfs.Sibling(root, name); twin != "" {
			return twin
		}
	}
	return ""
}

// open starts the process that counts: a command that calls [Confine], then [Serve] with the
// hierarchy as its root, which is appended as the last argument. A missing counter is no error:
// Unavailable lists it, and run_delay is always read.
func open(counted string, c poll.Config) (*reader, error) {
	if c.Root == "" || len(c.Helper) == 0 {
		return nil, trimtab.Invalidf("count events: no cgroups or command")
	}
	if counted == "" {
		counted = Hierarchy(c.Root)
	}
	r := &reader{root: c.Groups, before: map[poll.Group]*seen{}, proc: "/proc", logger: c.Logger}
	if counted != "" {
		var err error
		if r.counted, err = hostfs.OpenRoot(counted); err != nil {
			return nil, err
		}
	} else {
		r.unavailable = append(r.unavailable, "counters of cgroups: no hierarchy of version 2 or perf_event is mounted beside "+c.Root)
	}
	started := c.Metrics.Counter("trimtab_collector_perf_starts_total").Inc
	r.helper = &helper{command: append(append([]string{}, c.Helper...), counted), logger: c.Logger, started: started}
	r.begin()
	return r, nil
}

// begin starts the counting process for the first time, to find out what it cannot count.
func (c *reader) begin() {
	if err := c.helper.start(context.Background()); err != nil {
		c.unavailable = append(c.unavailable, c.helper.back(err).Error())
		return
	}
	able := c.helper.able
	c.logger.Info("performance counters", "software", orNone(able.Software), "hardware", orNone(able.Hardware))
	c.unavailable = append(c.unavailable, able.Missing...)
	if len(able.Hardware) == 0 {
		c.unavailable = append(c.unavailable, "cpi, mpki, rpki: no hardware counters; run_delay (schedstat), throttled (cgroup) and pressure (psi) tell of waiting instead")
	}
}

// Unavailable lists the counters that this host does not have.
func (c *reader) Unavailable() []string { return c.unavailable }

// Close ends the process that counts, and releases its hierarchy.
func (c *reader) Close() error {
	c.helper.end()
	if c.counted == nil {
		return nil
	}
	return c.counted.Close()
}

// Read counts everything once.
func (c *reader) Read(ctx context.Context, groups []poll.Group) (all []*trimtab.Sample, err error) {
	groups = append([]poll.Group{host()}, groups...)
	now := make(map[poll.Group]*seen, len(groups))
	intervals, err := c.count(ctx, groups)
	if ctx.Err() != nil {
		return nil, err
	}
	threads := &waits.Threads{Proc: c.proc}
	threads.Begin(maxAllThreads)
	for _, g := range groups {
		now[g] = &seen{}
		waits, window := c.waits(threads, g, now[g])
		i := intervals[g]
		if c.counted != nil && c.root != nil && c.counted.Path() != c.root.Path() && outside(i, c.before[g], now[g]) {
			i = failed(elsewhere)
		}
		all = append(all, samples(g, i, waits, window)...)
	}
	c.before = now
	return all, err
}

// failed is an interval of which nothing is known.
func failed(why string) interval {
	return interval{Software: set{Missing: why}, Hardware: set{Missing: why}}
}

// count asks the counting process for the counters of all groups that are in the counted
// hierarchy.
func (c *reader) count(ctx context.Context, groups []poll.Group) (map[poll.Group]interval, error) {
	out := make(map[poll.Group]interval, len(groups))
	var asked []poll.Group
	var ask []group
	for _, g := range groups {
		of, why := c.groupOf(g)
		if why == "" && len(ask) == MaxGroups {
			why = tooMany
		}
		if why != "" {
			out[g] = failed(why)
			continue
		}
		asked, ask = append(asked, g), append(ask, of)
	}
	intervals, err := c.helper.ask(ctx, ask)
	for i, g := range asked {
		if err != nil {
			out[g] = failed(unanswered)
			continue
		}
		out[g] = intervals[i]
	}
	return out, err
}

// groupOf returns the group to count, or why there is none.
func (c *reader) groupOf(g poll.Group) (group, string) {
	switch {
	case g == host():
		return group{}, ""
	case c.counted == nil:
		return group{}, notCounted
	}
	id, err := c.counted.Inode(g.Path)
	if err != nil {
		return group{}, poll.WhyMissing(err)
	}
	return group{strings.TrimPrefix(g.Path, "/"), id}, ""
}

// waits reads the threads of a group.
func (c *reader) waits(threads *waits.Threads, g poll.Group, now *seen) (value, time.Duration) {
	if g == host() {
		return value{missing: notCounted}, 0
	}
	var err error
	now.at = hostfs.BootTime()
	now.threads, err = threads.Read(c.root, g.Path, false)
	switch {
	case errors.Is(err, waits.ErrTooMany), errors.Is(err, waits.ErrLater):
		return value{missing: tooMany}, 0
	case err != nil:
		return value{missing: poll.WhyMissing(err)}, 0
	}
	was := c.before[g]
	if was == nil {
		return value{missing: poll.First}, 0
	}
	return delay(was.threads, now.threads), now.at - was.at
}

// slack is the largest difference between two CPU time counters of one group: a tick on each of
// some CPUs, and the time between the readings.
const slack = 100 * time.Millisecond

// outside reports whether tasks of a group are outside of the group of the same path whose counters
// were read: they ran for longer than that group counted. The counts of a hierarchy that is not in
// use are then unknown, not 0.
func outside(i interval, before, now *seen) bool {
	if before == nil || i.Software.Missing != "" || len(i.Software.Counts) <= taskClock {
		return false
	}
	ran, _ := waits.Between(before.threads, now.threads)
	return ran > 2*i.Software.Counts[taskClock]+float64(slack)
}
