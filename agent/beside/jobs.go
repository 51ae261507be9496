package beside

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/kinds"
	"github.com/trimtab/trimtab/agent"
	"github.com/trimtab/trimtab/agent/knobs"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/jobs"
	"github.com/trimtab/trimtab/internal/supervise"
	"github.com/trimtab/trimtab/pipeline"
	"github.com/trimtab/trimtab/planner/colocate"
)

// The on-off resources of a job, for which no policy computes amounts: whether it runs, and whether
// it exists.
const (
	running = trimtab.Running
	alive   = trimtab.Alive
)

// JobsDir is where the actuator of best-effort jobs keeps its journal, and the list of jobs that
// registered themselves.
func JobsDir(storage string) string { return filepath.Join(storage, "colocate") }

// jobKnobs are the knobs of the best-effort jobs of a host.
type jobKnobs struct {
	// root is the cgroup hierarchy; all has the knobs of declared jobs.
	root string
	all  []knobs.Declared
	// registered has the knobs of a job that registers itself: as in all, but without a location.
	registered []knobs.Declared
	// resources are those that can be controlled; missing are those that cannot, with the reason.
	resources []string
	missing   map[string]string
	// machine locates the kernel's files about the host; fastest is its highest clock, in MHz.
	machine machine
	fastest float64
}

// turnedOf lists the resources of jobs that trimtab controls: CPU time and weight always, others if
// the configuration names them. A resource whose input is measured is controlled, too: the clock of
// jobs if the host's power is measured, their network rate if the use of its links is.
func turnedOf(cfg *config.Config) []string {
	c, out := cfg.Beside.Jobs, []string{trimtab.CPU, trimtab.Weight, running, alive}
	if cfg.Measure.Power {
		out = append(out, trimtab.Frequency)
	}
	if len(cfg.Measure.Links) > 0 && slices.ContainsFunc(cfg.Jobs(), func(w *config.Workload) bool { return w.Knob.Interface != nil }) {
		out = append(out, trimtab.Network)
	}
	for _, a := range []*config.Amounts{&c.Capacity, &c.Start} {
		for name := range a.ByResource() {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out[4:])
	return out
}

// jobKnobsOf returns the knobs of this host's jobs.
func jobKnobsOf(kinds []actuator.Kind, cfg *config.Config, host string, m machine) (jobKnobs, error) {
	k := jobKnobs{missing: map[string]string{}, machine: m}
	var err error
	if k.root, err = hostfs.CPURoot(cfg.Actuator.CgroupRoot); err != nil {
		return k, err
	}
	for _, resource := range turnedOf(cfg) {
		kind, at, err := jobKind(kinds, k.root, resource)
		if err == nil && resource == trimtab.Frequency {
			k.fastest, err = m.fastest()
		}
		if err != nil {
			k.missing[resource] = err.Error()
			continue
		}
		before := len(k.all)
		for _, w := range cfg.Jobs() {
			if w.OnHost(host) && w.Mode != trimtab.Off {
				k.add(cfg, w, kind, at, resource)
			}
		}
		if resource == trimtab.Network { // a job that registers itself has a group, and no interface
			if len(k.all) == before {
				k.missing[resource] = "no best-effort job of this host has a knob.interface"
				continue
			}
		} else {
			any := config.Workload{Name: jobs.Workload, Mode: cfg.Beside.Jobs.Mode, Knob: config.Knob{CPU: &config.CPUBounds{Bounds: config.Bounds{Min: config.LeastCPU}}}}
			k.registered = append(k.registered, knobs.Declared{Kind: kind.Name, At: at, Place: kind.Name, Like: []actuator.Target{k.target(cfg, &any, resource)}})
		}
		k.resources = append(k.resources, resource)
	}
	return k, nil
}

// add adds the knob of a declared job.
func (k *jobKnobs) add(cfg *config.Config, w *config.Workload, kind actuator.Kind, at actuator.Location, resource string) {
	at.Path, at.Force = w.Knob.Cgroup, w.Knob.Force
	if resource == trimtab.Network {
		_, root, path, ok := w.Knob.Link()
		if !ok {
			return
		}
		at = actuator.Location{Root: root, Path: path}
	}
	k.all = append(k.all, knobs.Declared{Kind: kind.Name, At: at, Place: kind.Name + " " + at.Path, Like: []actuator.Target{k.target(cfg, w, resource)}})
}

// target returns jobTarget, with bounds from measurements.
func (k *jobKnobs) target(cfg *config.Config, w *config.Workload, resource string) actuator.Target {
	t := jobTarget(cfg, w, k.root, resource)
	if resource == trimtab.Frequency {
		t.Min, t.Max = min(leastClock, k.fastest), k.fastest
	}
	return t
}

// leastClock is the lowest clock that trimtab sets for jobs, in MHz.
const leastClock = 100

// jobKind returns the kind of knob that controls a resource of control groups on this host.
func jobKind(kinds []actuator.Kind, root, resource string) (actuator.Kind, actuator.Location, error) {
	for _, kind := range kinds {
		if slices.Contains(kind.Resources, resource) {
			at, err := kind.Probe(actuator.Location{Root: root, High: true})
			return kind, at, err
		}
	}
	return actuator.Kind{}, actuator.Location{}, fmt.Errorf("this build has no knob for %s: %w", resource, trimtab.ErrUnsupported)
}

// jobTarget is the target of one resource of a job, without its knob.
func jobTarget(cfg *config.Config, w *config.Workload, root, resource string) actuator.Target {
	t := actuator.Target{KnobID: trimtab.KnobID{Workload: w.Name, Resource: resource}, Mode: w.Mode}
	capacity, step := cfg.Beside.Jobs.Capacity.ByResource(), trimtab.ResourceOf(resource).Step
	switch resource {
	case running, alive:
		t.Max = 1
	case trimtab.Weight: // 0: an idle group; a restore returns the weight that was there
		t.Max = heaviest
	case trimtab.CPU:
		t.Min = w.Knob.CPU.Min
		t.Max = max(t.Min, cmp.Or(w.Knob.CPU.Max, capacity[resource], measuredCPUs(root)))
		t.Rest = least(&t)
	case trimtab.Memory:
		t.Min, t.Max = 1<<20, cmp.Or(capacity[resource], 1<<50)
		if m := w.Knob.Memory; m != nil {
			t.Min, t.Max = cmp.Or(float64(m.Min), t.Min), cmp.Or(float64(m.Max), t.Max)
		}
		t.Rest = least(&t) // memory in use stays, with a margin
	default:
		t.Min, t.Max = cmp.Or(step, 1), max(cmp.Or(step, 1), cmp.Or(capacity[resource], 1e15))
		if resource == trimtab.Cores {
			t.Rest = least(&t)
		} // for cache and bandwidths, a restore removes the limit together with the resource group
	}
	return t
}

// heaviest is the largest weight of a group.
const heaviest = 10_000

// least returns the amount to which a job falls back when nothing decides for it any more.
func least(t *actuator.Target) *trimtab.Amount {
	v := trimtab.Units(t.Min)
	return &v
}

func measuredCPUs(root string) float64 {
	if n, err := hostfs.CPUs(root); err == nil && n > 0 {
		return n
	}
	return float64(runtime.NumCPU())
}

// finders returns the finders of the jobs that register themselves.
func (k *jobKnobs) finders(kinds []actuator.Kind, r *jobs.Registry) (all []actuator.Finder, err error) {
	for _, d := range k.registered {
		kind, err := actuator.KindOf(kinds, d.Kind)
		if err != nil {
			return nil, err
		}
		all = append(all, actuator.Finder{
			Workload: jobs.Workload, Pattern: "registered jobs", Like: d.Like,
			Find: func(context.Context) ([]actuator.Instance, error) {
				var found []actuator.Instance
				for name, id := range r.There() {
					found = append(found, actuator.Instance{Name: name, ID: id})
				}
				return found, nil
			},
			Open: func(name string) ([]actuator.Target, error) {
				s, ok := r.Find(name)
				if !ok {
					return nil, fmt.Errorf("open job %s: %w", name, jobs.ErrUnknown)
				}
				at := d.At
				at.Path = s.Cgroup
				return kind.Targets(at, d.Like)
			},
		})
	}
	return all, nil
}

// JobsPart runs best-effort jobs beside the services of this host. It decides on this host and sets
// the knobs without the bus, so it continues while the link is cut.
func (s *Host) JobsPart(cfg *config.Config) ([]supervise.Part, error) {
	if cfg.Beside.Jobs == nil {
		return nil, nil
	}
	kinds := kinds.All()
	own, err := jobKnobsOf(kinds, cfg, s.Process.Host, machine{})
	if err != nil {
		return nil, fmt.Errorf("set up co-location: %w", err)
	}
	if err := declaredApart(cfg, ownGroups()); err != nil {
		return nil, fmt.Errorf("set up co-location: %w", err)
	}
	dir := JobsDir(cfg.Storage.Path)
	watchdog, err := supervise.Command(watchdogAt(s.Watchdog, dir), "watchdog", "--dir", dir)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(own.all, own.registered)
	c := actuator.Config{
		Host: s.Process.Host, Pool: colocation.JobsPool(cfg.Pool.Name), Dir: dir, Reopen: actuator.AnyOf(kinds), Shared: true, NoApply: true,
		Measure: knobs.Measure(kinds, cfg, all), Roots: knobs.Roots(kinds, all), LockDir: knobs.LockDir(cfg), Watchdog: watchdog,
		Limits: actuator.Limits{MaxLease: cfg.Beside.Jobs.Lease, Skew: cfg.Actuator.ClockSkew},
	}
	services := servicesOf(cfg, s.Process.Host, s.Fleet, kinds)
	if _, err := colocate.NewStep(stepConfig(cfg, s.Process.Host, own, services)); err != nil {
		return nil, fmt.Errorf("set up co-location: %w", err)
	}
	work := pipeline.Work{Round: cfg.Beside.Jobs.Period}
	key := supervise.KeyOf(c, cfg.Measure, own, *cfg.Beside.Jobs, jobsOf(cfg), services, cfg.ServiceGroups(), work, cfg.Actuator.Reserve)
	c.Metrics, c.Logger = s.Process.Metrics, s.Process.Logger
	return []supervise.Part{{Name: "colocate", Key: key, Start: func(ctx context.Context) (func() error, error) {
		return s.startColocate(ctx, cfg, c, kinds, own, services)
	}}}, nil
}

// watchdogAt returns the command of a watchdog for the journal in dir.
func watchdogAt(command []string, dir string) []string {
	out := slices.Clone(command)
	for i := range out {
		if i > 0 && out[i-1] == "--dir" {
			out[i] = dir
		}
	}
	return out
}

// policyConfig converts the configuration section for the policy.
func policyConfig(c *config.BesideJobs) colocate.Config {
	out := colocate.Config{Period: c.Period, MaxAge: c.MaxAge}
	if a := c.Start.ByResource(); len(a) > 0 {
		out.Start = a
	}
	if a := c.Step.ByResource(); len(a) > 0 {
		out.Step = a
	}
	return out
}

// jobsOf returns the declared jobs, by name.
func jobsOf(cfg *config.Config) map[string]config.Workload {
	out := map[string]config.Workload{}
	for _, w := range cfg.Jobs() {
		out[w.Name] = *w
	}
	return out
}

func (s *Host) startColocate(ctx context.Context, cfg *config.Config, c actuator.Config, kinds []actuator.Kind, own jobKnobs, services []serviceConfig) (_ func() error, err error) {
	s.Process.Ready.Set("colocate", "starting")
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("start co-location: %w", err)
	}
	registry, problem := jobs.Open(c.Dir, jobs.Config{Root: own.root, Reserved: cfg.ServiceGroups(), Own: ownGroups(), Predictions: config.Predictions(),
		Most: actuator.MaxKnobs / 2 / max(1, len(own.registered))}) // leaves room for declared jobs
	if problem != nil {
		s.Process.Logger.Warn("jobs that registered themselves: some are forgotten, and must register again", "err", problem)
	}
	if c.Targets, c.Finders, err = knobs.OpenAll(kinds, own.all); err != nil {
		return nil, err
	}
	finders, err := own.finders(kinds, registry)
	if err != nil {
		return nil, errors.Join(err, actuator.CloseTargets(c.Targets))
	}
	c.Finders = append(allApart(c.Finders, cfg, ownGroups()), finders...)
	a, err := actuator.Open(ctx, c)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open actuator of best-effort jobs: %w", err), actuator.CloseTargets(c.Targets))
	}
	h, err := newJobHost(cfg, s.Process.Host, a, registry, own, services)
	if err != nil {
		return nil, errors.Join(err, a.Close(ctx))
	}
	h.metrics, h.logger, h.bus = s.Process.Metrics, s.Process.Logger, s.Process.Bus
	health := pipeline.NewHealth(pipeline.Work{Round: cfg.Beside.Jobs.Period})
	b := health.Bus(s.Process.Bus)
	h.savedState = newSavedState(c.Dir, cfg.Pool.Name, s.Process.Host, s.Process.Bus)
	h.takeBack(ctx)
	s.jobs.Store(h)
	if err := s.catchUp(ctx, h); err != nil {
		s.Process.Logger.Warn("pause best-effort jobs", "err", err)
	}
	s.Process.Ready.Set("colocate", "")
	stop := s.Process.Background(ctx, "colocate", s.Process.Working("colocate", health, func(ctx context.Context) error {
		var hearing sync.WaitGroup
		hearing.Go(func() { s.hearOrders(ctx, cfg, b) })
		defer hearing.Wait()
		return h.run(ctx, b)
	}))
	return func() error {
		s.jobs.CompareAndSwap(h, nil)
		err := stop()
		ctx, cancel := s.Process.Ending.Within(actuator.LeastCloseTime)
		defer cancel()
		if err := h.close(ctx); err != nil {
			s.Process.Logger.Warn("limits of services may have to be found again", "err", err)
		}
		return errors.Join(err, a.Close(ctx))
	}, nil
}

// run decides at every period until ctx ends. If its inputs from the bus stop, it continues with
// the last ones, whose age counts.
func (h *jobHost) run(ctx context.Context, b bus.Bus) error {
	stop := agent.Listen(ctx, b, h.period, h.logger, bus.Subscription{Kind: colocation.KindContributions, For: "colocate", Handle: func(_ context.Context, d bus.Delivery) error {
		if c, ok := d.Value.(*colocation.Contributions); ok {
			h.reports.hear(time.Now(), c)
		}
		return nil
	}})
	defer stop()
	return h.frame.Run(ctx)
}

// groupOf returns the control group of a job.
func groupOf(pattern, instance string) string {
	return strings.Replace(hostfs.PlainPattern(pattern), "*", instance, 1)
}
