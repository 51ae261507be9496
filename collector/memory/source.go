package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/quantity"
)

// Reasons why a value is missing, in addition to those of package poll.
const (
	unlimited = "unlimited"
	untold    = "not told by this kernel"
)

// amounts lists the quantities in bytes, events those that count events since the previous reading.
func amounts() []quantity.Quantity {
	return []quantity.Quantity{quantity.WorkingSet, quantity.MemoryUsage, quantity.MemoryAnonymous, quantity.MemorySwap, quantity.MemoryLimit}
}

func events() []quantity.Quantity {
	return []quantity.Quantity{quantity.MemoryHighEvents, quantity.MemoryMaxEvents, quantity.OOMEvents, quantity.OOMKills}
}

// Source returns the source of samples of the memory of workloads' control groups.
func Source() poll.Source {
	s := poll.Source{Name: "memory", About: "memory of control groups: working set, limit, refaults, and how often it ran short", Grouped: true, Prompt: true, Interval: time.Second, Open: open}
	s.Quantities = append(append(amounts(), quantity.Refaults, quantity.PressureMemorySome), events()...)
	return s
}

// keptFor is how long a group that is gone is remembered. If it comes back within that time, its
// counters do not count from 0 as those of a new group.
const keptFor = 10 * time.Minute

// state is what the last round found of a group.
type state struct {
	last *reading // nil: the group could not be read
	seen time.Duration
	// watch counts how often a group of version 1 ran out of memory, also in its last second; nil: not
	// watched. gone says that the group was gone in the last round.
	watch *hostfs.OOMWatch
	gone  bool
	step  step
}

type reader struct {
	groups *hostfs.Root // the hierarchy of the memory controller
	states map[poll.Group]state
	// above has the OOM kills of each parent of a workload's group, as of the previous round.
	above  map[string]uint64
	rounds int
	// steps tells when a group of version 1 must be read before the next round; nil: nobody looks then.
	steps   *hostfs.UsageWatch
	metrics *metric.Set
	logger  *slog.Logger
}

// open opens the hierarchy of the memory controller, which version 1 mounts apart from that of cpu.
func open(c poll.Config) (poll.Reader, error) {
	if c.Groups == nil {
		return nil, fmt.Errorf("no control groups to read memory of: %w", trimtab.ErrUnsupported)
	}
	root, err := hostfs.OpenRoot(cmp.Or(hostfs.Sibling(c.Root, "memory"), c.Root))
	if err != nil {
		return nil, err
	}
	root.KeepOpen()
	for _, t := range c.Targets {
		c.Metrics.Counter(killsMetric, t.Workload) // from 0 on, so that a rate has the first kill
	}
	r := &reader{groups: root, states: map[poll.Group]state{}, metrics: c.Metrics, logger: c.Logger}
	if c.Seen != nil && root.Filesystem() == hostfs.Cgroup1 {
		r.steps, _ = root.WatchUsage() // without it there is a reading at each round
	}
	return r, nil
}

const killsMetric = "trimtab_workload_oom_kills_total"

// Unavailable lists what version 1 does not report.
func (r *reader) Unavailable() []string {
	if r.groups.Filesystem() == hostfs.Cgroup1 {
		return []string{"memory.high and OOM events of cgroups: they are of version 1, which has none"}
	}
	return nil
}

// Close ends all watches, and closes the hierarchy.
func (r *reader) Close() error {
	for _, s := range r.states {
		s.end()
	}
	if r.steps != nil {
		return errors.Join(r.steps.Close(), r.groups.Close())
	}
	return r.groups.Close()
}

// kills counts the kills of one round.
type kills struct {
	// Both are by parent group. below is the sum of the kills that the groups below counted in this
	// round; gone are the groups of workloads that disappeared since the previous round.
	below map[string]uint64
	gone  map[string][]poll.Group
	// more are the kills that only a parent group counted, by instance.
	more map[instance]uint64
}

// instance names an instance of a workload, whichever group it has.
type instance struct{ workload, host, name string }

func instanceOf(g poll.Group) instance { return instance{g.Workload, g.Host, g.Name} }

// Read reads every group once.
func (r *reader) Read(_ context.Context, groups []poll.Group) (all []*trimtab.Sample, _ error) {
	r.rounds++
	k := kills{map[string]uint64{}, map[string][]poll.Group{}, map[instance]uint64{}}
	now := map[poll.Group]bool{}
	readings := make([]*reading, len(groups))
	befores := make([]*reading, len(groups))
	errs := make([]error, len(groups))
	for i, g := range groups {
		now[g] = true
		befores[i] = r.before(g)
		readings[i], errs[i] = read(r.groups, g.Path, r.states[g].last)
		r.keep(g, readings[i])
		if errs[i] == nil && befores[i] != nil {
			n, _ := rise(befores[i], readings[i], quantity.OOMKills)
			k.below[path.Dir(g.Path)] += n
		}
	}
	r.forget(now, &k)
	r.askAbove(groups, &k)
	for i, g := range groups {
		s := r.states[g]
		r.ask(g.Path, &s.step, readings[i], false)
		r.states[g] = s
		for _, s := range samples(g.Sample, befores[i], readings[i], errs[i]) {
			if n := k.more[instanceOf(g)]; n > 0 && s.Quantity == quantity.OOMKills && s.Missing == "" {
				s.Value += float64(n)
				delete(k.more, instanceOf(g))
			}
			all = append(all, s)
		}
	}
	for of, n := range k.more {
		all = append(all, &trimtab.Sample{Workload: of.workload, Host: of.host, Instance: of.name, Quantity: quantity.OOMKills, Value: float64(n)})
	}
	r.tell(all)
	return all, nil
}

// keep records a reading of a group. It begins to watch a group that is new. It drops the events of a
// group that its counters have told.
func (r *reader) keep(g poll.Group, now *reading) {
	s, known := r.states[g]
	if !known && r.groups.Filesystem() == hostfs.Cgroup1 {
		s.watch, _ = r.groups.WatchOOM(g.Path) // without it the kills of the last second are lost
	}
	if s.watch != nil && (s.last == nil || now == nil || s.last.counts[quantity.OOMKills] != now.counts[quantity.OOMKills]) {
		s.watch.Count()
	}
	s.last, s.seen, s.gone = now, hostfs.BootTime(), false
	r.states[g] = s
}

// before returns the previous reading of a group; nil: there is none to compare with. A group that was
// created since the previous round has one whose counters are 0.
func (r *reader) before(g poll.Group) *reading {
	s, known := r.states[g]
	switch {
	case known:
		return s.last
	case r.rounds == 1:
		return nil
	}
	return &reading{counts: map[quantity.Quantity]uint64{}}
}

// forget finds the groups that disappeared since the previous round, and drops those that are gone for
// longer than keptFor.
func (r *reader) forget(now map[poll.Group]bool, k *kills) {
	at := hostfs.BootTime()
	for g, s := range r.states {
		switch {
		case now[g]:
		case s.last != nil:
			k.gone[path.Dir(g.Path)] = append(k.gone[path.Dir(g.Path)], g)
			r.ask(g.Path, &s.step, nil, false)
			r.states[g] = state{seen: s.seen, watch: s.watch, gone: true}
		case s.gone:
			// The removal counts as one event, and was signalled by now.
			if s.watch != nil && s.watch.Count() > 1 {
				k.more[instanceOf(g)]++
			}
			s.end()
			r.states[g] = state{seen: s.seen}
		case at-s.seen > keptFor:
			s.end()
			delete(r.states, g)
			r.groups.Forget(g.Path)
		}
	}
}

// end closes the watch of a group.
func (s *state) end() {
	if s.watch != nil {
		_ = s.watch.Close() // it was only read
		s.watch = nil
	}
}

// askAbove reads the kills that parent groups counted. If exactly one workload's group below a parent
// disappeared, kills that no other group counted belong to it.
func (r *reader) askAbove(groups []poll.Group, k *kills) {
	now := map[string]uint64{}
	look := func(up string) {
		if _, known := now[up]; known || up == "." || versionOf(r.groups, up) == 1 {
			return
		}
		text, err := r.groups.Read(path.Join(up, "memory.events"))
		if n, ok := hostfs.Keyed(text, "oom_kill"); ok && err == nil {
			now[up] = n
		}
	}
	for _, g := range groups {
		look(path.Dir(g.Path))
	}
	for up, gone := range k.gone {
		look(up)
		before, known := r.above[up]
		if after, ok := now[up]; ok && known && len(gone) == 1 && after > before+k.below[up] {
			k.more[instanceOf(gone[0])] = after - before - k.below[up]
		}
	}
	r.above = now
}

// tell adds kills to the metric and logs them.
func (r *reader) tell(all []*trimtab.Sample) {
	for _, s := range all {
		if s.Quantity == quantity.OOMKills && s.Missing == "" && s.Value > 0 {
			r.metrics.Counter(killsMetric, s.Workload).Add(s.Value)
			r.logger.Warn("the kernel killed processes for want of memory", "workload", s.Workload, "instance", s.Instance, "kills", s.Value)
		}
	}
}

// rise returns by how much a counter rose; false: it went back, or one reading has none.
func rise(before, after *reading, q quantity.Quantity) (uint64, bool) {
	n, ok := after.counts[q]
	then := before.counts[q]
	return n - min(n, then), ok && n >= then
}

// samples makes the samples of one group, from its previous and its new reading, or from the error that
// prevented the new one. It leaves out what the kernel does not report.
func samples(sample func(quantity.Quantity) *trimtab.Sample, before, after *reading, err error) (all []*trimtab.Sample) {
	for _, q := range amounts() {
		s := sample(q)
		v, ok := 0.0, false
		if err != nil {
			s.Missing = poll.WhyMissing(err)
		} else if v, ok = after.bytes[q]; ok {
			s.Value = v
		} else if q != quantity.MemoryLimit {
			continue
		} else if s.Missing = untold; after.unlimited {
			s.Missing = unlimited
		}
		all = append(all, s)
	}
	for _, q := range append(events(), quantity.Refaults) {
		s := sample(q)
		if err != nil {
			s.Missing = poll.WhyMissing(err)
		} else if _, ok := after.counts[q]; !ok {
			continue
		} else {
			fill(s, before, after)
		}
		all = append(all, s)
	}
	if s := pressure(sample, before, after); s != nil {
		all = append(all, s)
	}
	return all
}

// pressure makes the sample of the share of time in which some task waited for memory; nil: the kernel
// does not tell, or the group is new.
func pressure(sample func(quantity.Quantity) *trimtab.Sample, before, after *reading) *trimtab.Sample {
	if after == nil || before == nil || !after.pressed || !before.pressed || after.at <= before.at || after.waited < before.waited {
		return nil
	}
	s := sample(quantity.PressureMemorySome)
	s.Window = trimtab.SecondsOf(after.at - before.at)
	s.Value = min(1, (after.waited-before.waited).Seconds()/(after.at-before.at).Seconds())
	return s
}

// fill sets the number of events since the previous reading, or the refaults per second.
func fill(s *trimtab.Sample, before, after *reading) {
	if before == nil {
		s.Missing = poll.First
		return
	}
	n, ok := rise(before, after, s.Quantity)
	window := after.at - before.at
	switch {
	case !ok || window <= 0:
		s.Missing = poll.Reset
	case before.at == 0 && s.Quantity == quantity.Refaults: // the age of a new group is not known
		s.Missing = poll.First
	case before.at == 0:
		s.Value = float64(n)
	default:
		s.Value, s.Window = float64(n), trimtab.SecondsOf(window)
		if s.Quantity == quantity.Refaults {
			s.Value /= window.Seconds()
		}
	}
}
