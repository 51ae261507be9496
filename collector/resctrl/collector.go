package resctrl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/rdt"
)

// Source is the monitors of this host's hardware.
func Source() poll.Source { return from(rdt.Root, rdt.Open) }

// from reads the tree at root.
func from(root string, tree func(root string) (rdt.Files, error)) poll.Source {
	s := poll.Source{Name: "resctrl", About: "cache occupancy and memory bandwidth (Intel RDT, AMD QoS)", Grouped: true, Interval: 5 * time.Second,
		Open: func(c poll.Config) (poll.Reader, error) {
			files, err := tree(root)
			if err != nil {
				return nil, err
			}
			r := &reader{files: files, root: c.Root, groups: c.Groups, boot: hostfs.BootTime}
			if err := r.prepare(); err != nil {
				return nil, errors.Join(err, files.Close())
			}
			return r, nil
		}}
	for _, e := range events() {
		s.Quantities = append(s.Quantities, e.quantity)
	}
	return s
}

// reader reads monitors.
type reader struct {
	files  rdt.Files
	root   string
	groups *hostfs.Root // nil: no targets
	// events are the events that this host can count.
	events      []event
	before      *reading
	unavailable []string
	boot        func() time.Duration
}

// prepare finds out which monitors there are.
func (c *reader) prepare() error {
	has, err := rdt.Monitors(c.files)
	if err != nil {
		return err
	}
	for _, e := range events() {
		if slices.Contains(has, e.file) {
			c.events = append(c.events, e)
		} else {
			c.unavailable = append(c.unavailable, string(e.quantity)+": the CPU does not monitor "+e.file)
		}
	}
	if len(c.events) == 0 {
		return fmt.Errorf("the CPU monitors neither cache occupancy nor memory bandwidth (flags cqm_occup_llc, cqm_mbm_total, cqm_mbm_local): %w", trimtab.ErrUnsupported)
	}
	return nil
}

func (c *reader) Unavailable() []string { return c.unavailable }
func (c *reader) Close() error          { return c.files.Close() }

// Read reads the monitors of all groups of resctrl once. A workload that has none has no value.
func (c *reader) Read(_ context.Context, groups []poll.Group) (all []*trimtab.Sample, _ error) {
	before := c.before
	after, err := c.read()
	c.before = after
	for _, e := range c.events {
		v := value{missing: poll.Unreadable}
		if err == nil {
			v = whole(e, before, after)
		}
		all = append(all, v.of(poll.OfHost(e.quantity, "")))
	}
	if err != nil {
		return all, err
	}
	for _, g := range groups {
		name := c.groupOf(g.Instance)
		if after.groups[name] == nil {
			continue
		}
		for _, e := range c.events {
			all = append(all, of(e, name, before, after).of(g.Sample(e.quantity)))
		}
	}
	return all, nil
}

// groupOf names the resctrl group that trimtab's knobs make for a control group.
func (c *reader) groupOf(f hostfs.Instance) string {
	id, err := c.groups.Inode(f.Path)
	if err != nil {
		return ""
	}
	return rdt.Group(rdt.Location(c.root, f.Path), id)
}

// read reads the monitors of all groups.
func (c *reader) read() (*reading, error) {
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
func (c *reader) monitors(dir string) (*monitors, error) {
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
			n := count{missing: poll.Unreadable}
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
