package psi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/quantity"
)

// unreported is why full CPU pressure of a host is missing: the kernel always reports zeros for it.
const unreported = "not told of a whole host"

// Source is the pressure of this host and of its control groups.
func Source() poll.Source { return from("/proc/pressure") }

// from reads the host's files in a directory.
func from(pressure string) poll.Source {
	s := poll.Source{Name: "psi", About: "how long tasks waited for CPU, memory and I/O (pressure stall information)", Grouped: true, Interval: 5 * time.Second,
		Open: func(c poll.Config) (poll.Reader, error) { return open(pressure, c) }}
	for _, r := range resources() {
		s.Quantities = append(s.Quantities, r.some, r.full)
	}
	return s
}

// resource is a resource that tasks wait for.
type resource struct {
	name       string
	some, full quantity.Quantity
}

func resources() []resource {
	return []resource{
		{"cpu", quantity.PressureCPUSome, quantity.PressureCPUFull},
		{"memory", quantity.PressureMemorySome, quantity.PressureMemoryFull},
		{"io", quantity.PressureIOSome, quantity.PressureIOFull},
	}
}

// reading is one file at one time since the host booted.
type reading struct {
	Pressure
	at time.Duration
}

// reader reads pressure files. The host is the group without a path.
type reader struct {
	host        *hostfs.Root
	groups      *hostfs.Root // nil: groups have no pressure files
	before      map[poll.Group]map[string]*reading
	unavailable []string
}

// open opens the files. The error is trimtab.ErrUnsupported where the host has none. The root of
// version 2 has pressure files only since Linux 5.2 and never in a container, so its kind counts.
func open(pressure string, c poll.Config) (*reader, error) {
	host, err := hostfs.OpenRoot(pressure)
	if err == nil {
		_, err = host.Read("cpu")
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.EOPNOTSUPP) {
		err = fmt.Errorf("no pressure in %s (CONFIG_PSI, boot option psi=1): %w", pressure, trimtab.ErrUnsupported)
	}
	if err != nil {
		if host != nil {
			err = errors.Join(err, host.Close())
		}
		return nil, err
	}
	r := &reader{host: host, groups: c.Groups, before: map[poll.Group]map[string]*reading{}}
	if r.groups != nil && r.groups.Filesystem() == hostfs.Cgroup1 {
		r.groups = nil
		r.unavailable = append(r.unavailable, "pressure of cgroups: they are of version 1, which has none")
	}
	return r, nil
}

func (r *reader) Unavailable() []string { return r.unavailable }
func (r *reader) Close() error          { return r.host.Close() }

// Read reads every file once.
func (r *reader) Read(_ context.Context, groups []poll.Group) (all []*trimtab.Sample, _ error) {
	if r.groups == nil {
		groups = nil
	}
	now := map[poll.Group]map[string]*reading{}
	for _, g := range append([]poll.Group{{}}, groups...) {
		root, sample := r.groups, g.Sample
		file := func(name string) string { return path.Join(g.Path, name+".pressure") }
		if g == (poll.Group{}) {
			root, file = r.host, func(name string) string { return name }
			sample = func(q quantity.Quantity) *trimtab.Sample { return poll.OfHost(q, "") }
		}
		now[g] = map[string]*reading{}
		for _, of := range resources() {
			after := &reading{at: hostfs.BootTime()}
			text, err := root.Read(file(of.name))
			if err == nil {
				after.Pressure, err = Parse(text)
			}
			all = append(all, samples(sample, of, r.before[g][of.name], after, err)...)
			if err == nil {
				now[g][of.name] = after
			}
		}
	}
	r.before = now
	return all, nil
}

// samples makes the samples of one file: from two readings in order, or from the error that
// prevented one. full is left out if the kernel does not report it.
func samples(sample func(quantity.Quantity) *trimtab.Sample, r resource, before, after *reading, err error) (all []*trimtab.Sample) {
	for _, of := range []struct {
		q    quantity.Quantity
		full bool
	}{{r.some, false}, {r.full, true}} {
		s := sample(of.q)
		// On a whole host a task always runs while another waits for a CPU: the value there is 0
		// for ever since Linux 5.13 (kernel/sched/psi.c, psi_show).
		whole := of.q == quantity.PressureCPUFull && s.Workload == trimtab.HostItself
		switch {
		case err != nil:
			s.Missing = poll.WhyMissing(err)
		case of.full && after.Full == nil:
			continue
		case before == nil:
			s.Missing = poll.First
		case whole:
			s.Missing = unreported
		case of.full:
			fill(s, after.Full, before.Full, after.at-before.at)
		default:
			fill(s, after.Some, before.Some, after.at-before.at)
		}
		all = append(all, s)
	}
	return all
}

// fill sets the share of a window in which tasks waited.
func fill(s *trimtab.Sample, now, then *Stall, window time.Duration) {
	switch {
	case then == nil:
		s.Missing = poll.First
	case now.Total < then.Total || window <= 0:
		s.Missing = poll.Reset
	default:
		s.Window = trimtab.SecondsOf(window)
		// The kernel's totals are as of its last update, up to 2 s ago: a share may
		// seem to be above 1.
		s.Value = min(1, (now.Total-then.Total).Seconds()/window.Seconds())
	}
}
