package beside

import (
	"context"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cpufreq"
	"github.com/trimtab/trimtab/actuator/network"
	"github.com/trimtab/trimtab/collector/cgroup"
	"github.com/trimtab/trimtab/collector/link"
	"github.com/trimtab/trimtab/collector/psi"
	"github.com/trimtab/trimtab/collector/rapl"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/planner/colocate"
)

// machine locates the kernel's files about the host; the zero machine is this host.
type machine struct {
	power rapl.Reader
	// links is the directory of network interfaces; "": that of the kernel.
	links string
}

// fastest is the highest clock of any CPU, in MHz.
func (m *machine) fastest() (most float64, err error) {
	r := m.power.Read()
	if r.NoPolicies != nil {
		return 0, r.NoPolicies
	}
	for i := range r.Policies {
		most = max(most, r.Policies[i].Most)
	}
	if most < leastClock {
		return 0, fmt.Errorf("no policy of the CPUs tells its highest clock: %w", trimtab.ErrUnsupported)
	}
	return most, nil
}

// around measures the inputs of the co-location step other than knobs and services: the power that
// the host draws and its power limit, the clock of the services' cores, the traffic that services
// send over its links, and which services are idle. It needs no bus, and leaves out inputs that cannot be measured.
type around struct {
	machine
	powered bool
	links   []string
	root    string
	// groups are the control groups of services; least is the clock that the configuration demands
	// for them, in MHz.
	groups map[string][]string
	least  map[string]float64
	// senders are the interfaces of jobs in network namespaces.
	senders []actuator.Location

	before *measured

	measuring oneAtATime
	mu        sync.Mutex
	// newest is the measurement that was not taken yet; nil: there is none.
	newest *colocate.Surroundings
}

// measured has one reading of all inputs.
type measured struct {
	power rapl.Reading
	links map[string]link.Reading
	// sent is the number of bytes that each interface of a job has sent, by location and instance.
	sent map[string]uint64
	// used has what each service used and waited for.
	used map[string]groupTimes
	at   time.Duration
}

// aroundOf returns the inputs that can be measured on a host; nil: none can.
func aroundOf(cfg *config.Config, host string, k jobKnobs) *around {
	a := &around{machine: k.machine, powered: cfg.Measure.Power, links: cfg.Measure.Links, root: k.root, groups: map[string][]string{}, least: map[string]float64{}}
	pooled, entry := cfg.Pooled(), cfg.Application()
	for i := range pooled.Workloads {
		w := &pooled.Workloads[i]
		if w.Class != trimtab.BestEffort && w.Knob.Cgroup != "" && w.OnHost(host) {
			name := w.Name
			if entry != nil {
				name = entry.Name // the service is the whole application
			}
			a.groups[name] = append(a.groups[name], w.Knob.Cgroup)
			if b, ok := w.Knob.BoundsOf(trimtab.Frequency); ok {
				a.least[name] = max(a.least[name], b.Min)
			}
		}
	}
	for i := range k.all {
		d := &k.all[i]
		if namespace, _, ok := strings.Cut(d.At.Path, "/"); d.Like[0].Resource == trimtab.Network && ok && namespace != "" {
			a.senders = append(a.senders, d.At)
		}
	}
	if !a.powered && len(a.links) == 0 && len(a.groups) == 0 {
		return nil
	}
	return a
}

// look measures all inputs once.
func (a *around) look(ctx context.Context, now time.Time) *colocate.Surroundings {
	m := &measured{links: map[string]link.Reading{}, sent: map[string]uint64{}, used: a.times()}
	out := &colocate.Surroundings{Time: now}
	if a.powered {
		m.power = a.power.Read()
		out.Frequencies = a.clocks(&m.power)
	}
	for _, name := range a.links {
		if r, err := link.Read(a.machine.links, name); err == nil {
			m.links[name] = r
		}
	}
	m.at = hostfs.BootTime()
	for _, at := range a.senders {
		for instance, v := range network.Sent(ctx, at) {
			m.sent[at.Root+"/"+at.Path+" "+instance] = v
		}
	}
	before := a.before
	a.before = m
	if before == nil {
		return out
	}
	out.Idle = idle(before, m)
	if a.powered {
		if draws, may, err := rapl.Power(before.power, m.power); err == nil {
			out.Power = &colocate.Power{Draws: draws, TDP: may}
		}
	}
	if out.Link = a.used(before, m); out.Link != nil {
		out.Capacity = colocate.Amounts{trimtab.Network: out.Link.Bandwidth}
	}
	return out
}

// used returns the rate that services send over all named links: all traffic, minus the traffic of
// jobs on their own interfaces. Traffic of a job that cannot be read counts as the services', so
// that jobs get less. Traffic from jobs to other programs on this host counts as if it had left the
// host. used returns nil if a link is missing or reports no speed.
func (a *around) used(before, now *measured) *colocate.Link {
	var l colocate.Link
	window, bytes := (now.at - before.at).Seconds(), 0.0
	for _, name := range a.links {
		x, known := before.links[name]
		y, still := now.links[name]
		if !known || !still || y.Bytes < x.Bytes || y.Bandwidth <= 0 {
			return nil
		}
		l.Bandwidth, bytes = l.Bandwidth+y.Bandwidth, bytes+float64(y.Bytes-x.Bytes)
	}
	if len(a.links) == 0 || window <= 0 {
		return nil
	}
	for name, v := range now.sent {
		if old, ok := before.sent[name]; ok && v >= old {
			bytes -= float64(v - old)
		}
	}
	l.Used = max(0, bytes) / window
	return &l
}

// clocks returns the clock of each service's cores, as the mean over their CPUs, and the minimum
// for it: the configured one, else the base clock that the processor reports.
func (a *around) clocks(r *rapl.Reading) map[string]colocate.Frequency {
	policy := map[int]*rapl.Policy{}
	for i := range r.Policies {
		p := &r.Policies[i]
		if all, err := cpufreq.ParseCPUs(p.CPUs); err == nil && p.Err == nil {
			for _, cpu := range all {
				policy[cpu] = p
			}
		}
	}
	out := map[string]colocate.Frequency{}
	for name, groups := range a.groups {
		var f colocate.Frequency
		n, untold := 0.0, false
		for cpu := range a.cpus(groups) {
			if p := policy[cpu]; p != nil {
				n++
				f.Now += p.MHz
				f.Least += p.Base
				untold = untold || p.Base <= 0
			}
		}
		if n == 0 {
			continue
		}
		if f.Now, f.Least = f.Now/n, f.Least/n; untold {
			f.Least = 0
		}
		if least := a.least[name]; least > 0 {
			f.Least = least
		}
		out[name] = f
	}
	return out
}

// groupTimes has the CPU time of the groups of a service, and how long something in them waited for
// CPUs, memory or disks.
type groupTimes struct{ used, waited time.Duration }

// mostIdle is the share of a core that a service uses at most while it is idle, and the share of the
// time for which something in it may wait.
const mostIdle = 0.01

// times reads the counters of all services. It leaves out a service if one of its groups cannot be
// read, as on version 1, where groups have no pressure.
func (a *around) times() map[string]groupTimes {
	root, err := hostfs.OpenRoot(a.root)
	if err != nil {
		return nil
	}
	defer root.Close()
	out := map[string]groupTimes{}
	for name, groups := range a.groups {
		var sum groupTimes
		told := false
		for _, group := range groups {
			found, err := (&hostfs.Follower{Path: group}).Look(root)
			told = err == nil && len(found) > 0
			for _, f := range found {
				told = told && sum.add(root, f.Path)
			}
			if !told {
				break
			}
		}
		if told {
			out[name] = sum
		}
	}
	return out
}

// add adds the counters of a group, and reports whether it could read all of them.
func (g *groupTimes) add(root *hostfs.Root, group string) bool {
	text, err := root.Read(path.Join(group, "cpu.stat"))
	if err != nil {
		return false
	}
	stat, timed, err := cgroup.ParseStat(text)
	if err != nil || !timed {
		return false
	}
	g.used += stat.Used
	for _, of := range []string{"cpu", "memory", "io"} {
		text, err := root.Read(path.Join(group, of+".pressure"))
		if err != nil {
			return false
		}
		p, err := psi.Parse(text)
		if err != nil || p.Some == nil {
			return false
		}
		g.waited += p.Some.Total
	}
	return true
}

// idle returns the services that used and waited for next to nothing between two readings.
func idle(before, now *measured) map[string]bool {
	out, most := map[string]bool{}, time.Duration(mostIdle*float64(now.at-before.at))
	for name, v := range now.used {
		was, known := before.used[name]
		used, waited := v.used-was.used, v.waited-was.waited
		out[name] = known && most > 0 && used >= 0 && used <= most && waited >= 0 && waited <= most
	}
	return out
}

// cpus returns the CPUs that the groups of a service may run on.
func (a *around) cpus(groups []string) map[int]bool {
	root, err := hostfs.OpenRoot(a.root)
	if err != nil {
		return nil
	}
	defer root.Close()
	out := map[int]bool{}
	for _, group := range groups {
		found, _ := (&hostfs.Follower{Path: group}).Look(root) // a group that does not exist yields none
		for _, f := range found {
			all, _ := cpufreq.CPUs(a.root, f.Path) // on an error no CPUs are added
			for _, cpu := range all {
				out[cpu] = true
			}
		}
	}
	return out
}

// measure takes a measurement concurrently with the decisions, one at a time; the next tick uses
// the result.
func (a *around) measure(ctx context.Context, now time.Time) {
	a.measuring.start(func() {
		s := a.look(ctx, now)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.newest = s
	})
}

// take removes and returns the measurement since the last tick.
func (a *around) take() *colocate.Surroundings {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.newest
	a.newest = nil
	return s
}
