package signals

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/fingerprint"
	"github.com/trimtab/trimtab/collector/cgroup"
	"github.com/trimtab/trimtab/collector/perf"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/collector/psi"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/planner/throttle"
	"github.com/trimtab/trimtab/quantity"
)

// Service is a service on whose host tasks run.
type Service struct {
	Workload string
	// Path is the path of its control group, a pattern if it has several instances.
	Path string
	// Cores is the largest number of cores that it may have; 0: not declared.
	Cores float64
	SLO   time.Duration
}

// The names of signals, as people see them.
const (
	CPI            = "cpi"
	Delay          = "run-queue delay"
	cpuPressure    = "cpu pressure"
	memoryPressure = "memory pressure"
	ioPressure     = "io pressure"
	throttled      = "throttled"
	Latency        = "latency"
)

// waits returns the signals that replace CPI if it is not counted: each is a share of time that was
// lost to waiting.
func waits() map[quantity.Quantity]string {
	return map[quantity.Quantity]string{quantity.RunDelay: Delay, quantity.PressureCPUSome: cpuPressure, quantity.PressureMemorySome: memoryPressure,
		quantity.PressureIOSome: ioPressure, quantity.Throttled: throttled}
}

const (
	// every is the interval of measurements; Settled is how long after the first sample of a
	// round the others have arrived; fresh is how long a sample is valid.
	every   = time.Second
	Settled = 100 * time.Millisecond
	fresh   = 10 * time.Second
	// maxModels is the largest number of models, at some 16 KiB each.
	maxModels = 256
)

// copyID is one running copy of a service here.
type copyID struct{ workload, instance string }

// modelID is one signal of a copy.
type modelID struct {
	copyID
	signal string
}

// round has the samples of one instance at one time.
type round struct {
	of     copyID
	time   time.Time
	at     time.Duration // when the first sample arrived, since the host booted
	values map[quantity.Quantity]trimtab.Sample
}

// counted has the last hardware counts of an instance.
type counted struct {
	at        time.Duration
	cpi, mpki fingerprint.Reading
	cores     fingerprint.Reading
}

// reader is a collector whose Run measures until its context ends.
type reader interface {
	Run(context.Context) error
	Close() error
}

// Set follows the state of a host's services: by hardware counters if they work, else by the time
// that services waited for resources, and by their latency. It learns the normal level of each
// signal while no speculative task runs.
type Set struct {
	services []Service
	Lacks    []string
	measures []reader
	root     string

	mu     sync.Mutex
	rounds []*round
	stands map[string]throttle.Sample // the newest latency, by workload

	// Used by the loop alone.
	models map[modelID]*fingerprint.Workload
	last   map[copyID]*counted
}

// New returns a Set for the services.
func New(services []Service) *Set {
	return &Set{services: services, stands: map[string]throttle.Sample{}, models: map[modelID]*fingerprint.Workload{}, last: map[copyID]*counted{}}
}

// Open opens the collectors. After it, Lacks lists what the host does not offer.
func (s *Set) Open(host, root string, counter []string, logger *slog.Logger) error {
	c := poll.Config{Host: host, Root: root, Interval: every, Helper: counter, Bus: s, Logger: logger}
	for _, of := range s.services {
		c.Targets = append(c.Targets, poll.Target{Workload: of.Workload, Host: host, Path: of.Path})
	}
	s.root = root
	for _, of := range []poll.Source{perf.Source(), psi.Source()} {
		p, err := poll.Open(of, c)
		switch {
		case errors.Is(err, trimtab.ErrUnsupported):
			s.Lacks = append(s.Lacks, err.Error())
		case err != nil:
			return err
		default:
			s.measures, s.Lacks = append(s.measures, p), append(s.Lacks, p.Unavailable()...)
		}
	}
	groups, err := cgroup.Open(cgroup.Config{Root: root, Targets: c.Targets, Interval: every, Bus: s, Logger: logger})
	if err == nil {
		s.measures = append(s.measures, groups)
	}
	return err
}

// Run measures until ctx ends.
func (s *Set) Run(ctx context.Context) error {
	errs := make([]error, len(s.measures))
	var running sync.WaitGroup
	for i, r := range s.measures {
		running.Go(func() { errs[i] = r.Run(ctx) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// Close closes the collectors.
func (s *Set) Close() (err error) {
	for _, r := range s.measures {
		err = errors.Join(err, r.Close())
	}
	return err
}

// Publish accepts a sample of a collector; it never fails.
func (s *Set) Publish(_ context.Context, v trimtab.Value) error {
	if sample, ok := v.(*trimtab.Sample); ok && sample.Workload != trimtab.HostItself {
		s.Add(hostfs.BootTime(), sample)
	}
	return nil
}

// Add stores a sample; the number of pending rounds is bounded.
func (s *Set) Add(now time.Duration, v *trimtab.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := copyID{v.Workload, v.Instance}
	at := slices.IndexFunc(s.rounds, func(r *round) bool { return r.of == of && r.time.Equal(v.Time) })
	if at < 0 {
		if len(s.rounds) > 4*maxModels {
			s.rounds = slices.Delete(s.rounds, 0, maxModels)
		}
		at = len(s.rounds)
		s.rounds = append(s.rounds, &round{of: of, time: v.Time, at: now, values: map[quantity.Quantity]trimtab.Sample{}})
	}
	s.rounds[at].values[v.Quantity] = *v
}

// Hear stores a service's report. Its age counts from its arrival.
func (s *Set) Hear(c *colocation.Contributions) { s.heard(hostfs.BootTime(), c) }

func (s *Set) heard(now time.Duration, c *colocation.Contributions) {
	i := slices.IndexFunc(s.services, func(b Service) bool { return b.Workload == c.Workload })
	if i < 0 || c.Tail == nil {
		return
	}
	slo := c.SLO
	if slo <= 0 {
		slo = trimtab.SecondsOf(s.services[i].SLO)
	}
	if slo <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stands[c.Workload] = throttle.Sample{Signal: Latency, Time: Time(now), Length: c.Window.Duration(), Value: *c.Tail, Boundary: float64(slo), Anomaly: *c.Tail > float64(slo)}
}

// Time converts a time since boot into a time.Time for the policy.
func Time(at time.Duration) time.Time { return time.Unix(0, 0).UTC().Add(at) }

// Observe returns the services that run here now, with the measurements since the last call. busy
// is when a speculative task last ran.
func (s *Set) Observe(now, busy time.Duration) []throttle.LRA {
	out := map[string][]throttle.Sample{}
	for _, r := range s.takeSettled(now) {
		out[r.of.workload] = append(out[r.of.workload], s.judge(r, busy)...)
	}
	s.mu.Lock()
	for name, l := range s.stands {
		out[name] = append(out[name], l)
	}
	clear(s.stands)
	s.mu.Unlock()
	var all []throttle.LRA
	for _, of := range s.services {
		if found, err := filepath.Glob(filepath.Join(s.root, of.Path)); s.root != "" && err == nil && len(found) == 0 {
			continue
		}
		all = append(all, throttle.LRA{Workload: of.Workload, Cores: of.coresHere(), Samples: s.chosen(now, of.Workload, out[of.Workload])})
	}
	return all
}

// Groups lists the directories of the services' groups beneath a root.
func (s *Set) Groups(root string) (all []string) {
	for _, of := range s.services {
		found, err := filepath.Glob(filepath.Join(root, of.Path))
		if err == nil {
			all = append(all, found...)
		}
	}
	return all
}

// coresHere returns how many cores the service may have; -1, which counts as all, if unknown.
func (b Service) coresHere() float64 {
	if b.Cores > 0 {
		return b.Cores
	}
	return -1
}

// chosen drops the substitutes of CPI if CPI is counted.
func (s *Set) chosen(now time.Duration, workload string, samples []throttle.Sample) []throttle.Sample {
	if cpi, _ := s.Means(now, workload); cpi == nil {
		return samples
	}
	instead := waits()
	return slices.DeleteFunc(samples, func(v throttle.Sample) bool {
		for _, name := range instead {
			if v.Signal == name || strings.HasPrefix(v.Signal, name+" of ") {
				return true
			}
		}
		return false
	})
}

// takeSettled returns the complete rounds, the oldest first.
func (s *Set) takeSettled(now time.Duration) (settled []*round) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rounds = slices.DeleteFunc(s.rounds, func(r *round) bool {
		if now-r.at < Settled {
			return false
		}
		settled = append(settled, r)
		return true
	})
	return settled
}

// judge passes a round to the models of its instance. The models learn from it if no task ran.
func (s *Set) judge(r *round, busy time.Duration) (out []throttle.Sample) {
	c := s.last[r.of]
	if c == nil {
		c = &counted{}
		s.last[r.of] = c
	}
	get := func(q quantity.Quantity) fingerprint.Reading {
		v, told := r.values[q]
		return fingerprint.Reading{Value: v.Value, Counted: told && v.Missing == ""}
	}
	if cores := cmp.Or(get(quantity.TaskClock), get(quantity.Usage)); cores.Counted {
		c.cores = cores
	}
	if cpi := get(quantity.CPI); cpi.Counted {
		c.at, c.cpi, c.mpki = r.at, cpi, get(quantity.MPKI)
		v := fingerprint.Sample{Length: r.values[quantity.CPI].Window.Duration(), CPI: cpi, MPKI: c.mpki, References: get(quantity.RPKI), Cores: c.cores}
		out = s.ask(out, r, CPI, v, busy)
	}
	for _, q := range []quantity.Quantity{quantity.RunDelay, quantity.PressureCPUSome, quantity.PressureMemorySome, quantity.PressureIOSome, quantity.Throttled} {
		v, told := r.values[q]
		name := waits()[q]
		switch {
		case !told:
		case v.Missing == perf.Idle: // an idle instance cannot be disturbed
			out = append(out, throttle.Sample{Signal: r.named(name), Time: Time(r.at), Value: 1, Boundary: 2})
		case v.Missing == "":
			out = s.ask(out, r, name, fingerprint.Sample{Length: v.Window.Duration(), CPI: fingerprint.Counted(stretch(v.Value)), Cores: c.cores}, busy)
		}
	}
	return out
}

// stretch returns the factor by which work takes longer when a share of the time is lost:
//
//	1 / (1 − share)
//
// It is to time what CPI is to instructions, so the same models judge both.
func stretch(share float64) float64 { return 1 / (1 - min(0.99, max(0, share))) }

// named returns the name of a signal, with the instance if the workload has several copies.
func (r *round) named(signal string) string {
	if r.of.instance == "" {
		return signal
	}
	return signal + " of " + r.of.instance
}

// ask appends the judgement of one model, if it has learned enough for one.
func (s *Set) ask(out []throttle.Sample, r *round, signal string, v fingerprint.Sample, busy time.Duration) []throttle.Sample {
	id := modelID{r.of, signal}
	m := s.models[id]
	if m == nil {
		if len(s.models) >= maxModels {
			return out
		}
		m = fingerprint.New()
		s.models[id] = m
	}
	alone := r.at-v.Length > busy
	j, done, err := m.Observe(Time(r.at), v, alone)
	if err != nil || !done || j.CPI.Model == fingerprint.Unknown {
		return out
	}
	return append(out, throttle.Sample{Signal: r.named(signal), Time: Time(r.at), Length: v.Length, Value: j.CPI.Value, Boundary: j.CPI.Boundary, Anomaly: j.Anomaly && j.CPI.Over})
}

// Means returns the mean CPI and MPKI over the recently counted copies of a workload, or of all
// with ""; nil: none was counted.
func (s *Set) Means(now time.Duration, workload string) (cpi, mpki *float64) {
	var sums [2]float64
	var n [2]int
	for id, c := range s.last {
		if workload != "" && id.workload != workload || now-c.at > fresh {
			continue
		}
		for i, v := range []fingerprint.Reading{c.cpi, c.mpki} {
			if v.Counted {
				sums[i], n[i] = sums[i]+v.Value, n[i]+1
			}
		}
	}
	var out [2]*float64
	for i := range out {
		if n[i] > 0 {
			mean := sums[i] / float64(n[i])
			out[i] = &mean
		}
	}
	return out[0], out[1]
}
