package colocate

import (
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
)

// Environment is everything that a run depends on but policy, length and seed.
// In JSON its names are those below; docs/sim-colocate.md describes each.
type Environment struct {
	Name string `json:"name"`
	// Hosts by name. Every component is on one of them.
	Hosts    []Host    `json:"hosts"`
	Services []Service `json:"services"`
	// Jobs are the types of best-effort jobs. Each host has a queue that never
	// empties, drawn from them.
	Jobs []JobType `json:"best_effort"`
	Load Load      `json:"load"`
}

// Host is one machine.
type Host struct {
	Name  string  `json:"name"`
	Cores float64 `json:"cores"`
	// Ways of the last-level cache, and how many best-effort jobs may never have.
	Ways     float64 `json:"llc_ways"`
	KeptWays float64 `json:"llc_ways_kept"`
	// Memory in bytes, Network and its link in bytes/s. Memory bandwidth is in
	// percent of the machine's.
	Memory  float64 `json:"memory_bytes"`
	Network float64 `json:"network_bytes_per_s"`
}

// Service is a latency-critical service.
type Service struct {
	Name string `json:"name"`
	// MaxLoad in requests/s. SLO bounds the p99 in seconds; 0: the worst p99 of a
	// period in 30 minutes alone at the maximum load, as in the paper.
	MaxLoad    float64     `json:"max_load"`
	SLO        float64     `json:"slo_s,omitempty"`
	Components []Component `json:"components"`
	// Call is what a request does.
	Call Call `json:"call"`
}

// Component is one part of a service, alone or with others on a host.
type Component struct {
	Name string `json:"name"`
	Host string `json:"host"`
	// Mean of the service time in seconds, its coefficient of variation (the
	// distribution is lognormal), and what is always added, such as the network.
	Mean  float64 `json:"service_s"`
	CV    float64 `json:"cv"`
	Floor float64 `json:"floor_s,omitempty"`
	// Servers serve a request each at a time: threads, not cores.
	Servers int `json:"servers"`
	// Cores are its own, by cpuset. The others are what it uses at the maximum
	// load: a share of the memory bandwidth, bytes of memory, bytes/s.
	Cores     float64 `json:"cores"`
	Bandwidth float64 `json:"membw"`
	Memory    float64 `json:"memory_bytes"`
	Network   float64 `json:"network_bytes_per_s"`
	// Sensitivity by resource: cpu, llc, membw, network.
	Sensitivity map[string]Sensitivity `json:"sensitivity"`
	// Origin says where the numbers are from.
	Origin string `json:"origin,omitempty"`
}

// Sensitivity says what the pressure p in [0, 1] on one resource does: service
// times grow by 1 + Slowdown p², and a request meets, with probability Stall p²,
// a pause that is exponential with mean Pause.
type Sensitivity struct {
	Slowdown float64 `json:"slowdown"`
	Stall    float64 `json:"stall,omitempty"`
	Pause    float64 `json:"pause_s,omitempty"`
}

// Call is a visit to a component, and what that calls: one stage after the
// other, the calls of a stage at the same time.
type Call struct {
	Component string `json:"component"`
	// Share of the requests that make this call; 0: all.
	Share  float64  `json:"share,omitempty"`
	Stages [][]Call `json:"calls,omitempty"`
}

// Progress is how a job of a type tells how far it is.
type Progress string

// The models of progress.
const (
	DataParallel  Progress = "data-parallel"
	Training      Progress = "training"
	Unpredictable Progress = "unpredictable"
)

// JobType is a kind of best-effort job.
type JobType struct {
	Name     string   `json:"name"`
	Progress Progress `json:"progress"`
	// Length is the time in seconds that a job takes alone on a machine, on
	// average (uniform over half to one and a half).
	Length float64 `json:"length_s"`
	// Checkpoint is the time in seconds of running between two checkpoints; 0:
	// there are none, and a job that is killed begins again.
	Checkpoint float64 `json:"checkpoint_s,omitempty"`
	// Busy is the share of the time that its cores work; Bandwidth what a core
	// moves, as a multiple of its share of the machine's memory bandwidth; Cache
	// the share of the ways that it is given which it fills; Network what a core
	// sends, in bytes/s.
	Busy      float64 `json:"cpu"`
	Bandwidth float64 `json:"membw"`
	Cache     float64 `json:"llc"`
	Network   float64 `json:"network_bytes_per_s,omitempty"`
	// Gain is what share of its speed it loses without cache.
	Gain float64 `json:"llc_gain"`
	// Memory in bytes that it cannot be cut below.
	Memory float64 `json:"memory_bytes"`
	// Weight is how many of the jobs are of this type, relative to others; 0: 1.
	Weight float64 `json:"weight,omitempty"`
	Origin string  `json:"origin,omitempty"`
}

// Load is the load of all services over the run, as shares of their maximum.
type Load struct {
	// Levels are held one after the other, for equal parts of the run.
	Levels []float64 `json:"levels,omitempty"`
	// Trace is played from its begin to its end over the run, scaled so that its
	// peak is Peak of the maximum load (0: 1).
	Trace []float64 `json:"trace,omitempty"`
	Peak  float64   `json:"peak,omitempty"`
	// Noise is the standard deviation of the load's logarithm from period to
	// period.
	Noise float64 `json:"noise,omitempty"`
}

// Bounds of what an environment may have.
const (
	maxHosts, maxServices, maxComponents, maxTypes = 256, 64, 64, 64
	maxServers, maxPoints, maxCalls                = 4096, 1_000_000, 256
)

// resources are those that a component can be sensitive to.
func resources() []string { return []string{"cpu", "llc", "membw", "network"} }

// bounded is a number with what it may be.
type bounded struct {
	what         string
	v, low, high float64
}

func check(where string, all ...bounded) error {
	for _, b := range all {
		if !(b.v >= b.low && b.v <= b.high) {
			return trimtab.Invalidf("%s: %s is %v: want %g to %g", where, b.what, b.v, b.low, b.high)
		}
	}
	return nil
}

// Validate returns an error that names what is wrong and is trimtab.ErrInvalid.
func (e *Environment) Validate() error {
	if err := check("environment", bounded{"number of hosts", float64(len(e.Hosts)), 1, maxHosts},
		bounded{"number of services", float64(len(e.Services)), 1, maxServices},
		bounded{"number of best_effort types", float64(len(e.Jobs)), 1, maxTypes}); err != nil {
		return err
	}
	hosts := map[string]*Host{}
	for i := range e.Hosts {
		h := &e.Hosts[i]
		if h.Name == "" || hosts[h.Name] != nil {
			return trimtab.Invalidf("hosts[%d]: name %.60q: want one of its own", i, h.Name)
		}
		hosts[h.Name] = h
		if err := h.validate(); err != nil {
			return err
		}
	}
	seen, used := map[string]bool{}, map[string]float64{}
	for i := range e.Services {
		s := &e.Services[i]
		if s.Name == "" || seen[s.Name] {
			return trimtab.Invalidf("services[%d]: name %.60q: want one of its own", i, s.Name)
		}
		seen[s.Name] = true
		if err := s.validate(hosts, used); err != nil {
			return fmt.Errorf("service %.60q: %w", s.Name, err)
		}
	}
	for name, cores := range used {
		if cores >= hosts[name].Cores {
			return trimtab.Invalidf("host %.60q: components have %g cores, it has %g: want some left", name, cores, hosts[name].Cores)
		}
	}
	return e.validateJobs()
}

func (h *Host) validate() error {
	return check(fmt.Sprintf("host %.60q", h.Name), bounded{"cores", h.Cores, 2, 4096}, bounded{"llc_ways", h.Ways, 2, 64},
		bounded{"llc_ways_kept", h.KeptWays, 0, h.Ways - 1}, bounded{"memory_bytes", h.Memory, 1 << 30, 1 << 50},
		bounded{"network_bytes_per_s", h.Network, 1, 1e13})
}

func (e *Environment) validateJobs() error {
	seen := map[string]bool{}
	for i := range e.Jobs {
		j := &e.Jobs[i]
		where := fmt.Sprintf("best_effort %.60q", j.Name)
		if j.Name == "" || seen[j.Name] {
			return trimtab.Invalidf("best_effort[%d]: name %.60q: want one of its own", i, j.Name)
		}
		seen[j.Name] = true
		switch j.Progress {
		case DataParallel, Training, Unpredictable:
		default:
			return trimtab.Invalidf("%s: progress %.40q: want %s, %s or %s", where, j.Progress, DataParallel, Training, Unpredictable)
		}
		if err := check(where, bounded{"length_s", j.Length, 1, 1e7}, bounded{"checkpoint_s", j.Checkpoint, 0, 1e7}, bounded{"cpu", j.Busy, 0, 1},
			bounded{"membw", j.Bandwidth, 0, 100}, bounded{"llc", j.Cache, 0, 1}, bounded{"llc_gain", j.Gain, 0, 0.99},
			bounded{"memory_bytes", j.Memory, 0, 1 << 50}, bounded{"network_bytes_per_s", j.Network, 0, 1e13}, bounded{"weight", j.Weight, 0, 1e6}); err != nil {
			return err
		}
	}
	return e.Load.validate()
}

func (l *Load) validate() error {
	if (len(l.Levels) == 0) == (len(l.Trace) == 0) {
		return trimtab.Invalidf("load: want either levels or trace")
	}
	if err := check("load", bounded{"number of points", float64(len(l.Levels) + len(l.Trace)), 1, maxPoints},
		bounded{"noise", l.Noise, 0, 1}, bounded{"peak", l.Peak, 0, 2}); err != nil {
		return err
	}
	for i, v := range l.Levels {
		if err := check("load", bounded{fmt.Sprintf("levels[%d]", i), v, 0, 2}); err != nil {
			return err
		}
	}
	most := 0.0
	for i, v := range l.Trace {
		if err := check("load", bounded{fmt.Sprintf("trace[%d]", i), v, 0, 1e12}); err != nil {
			return err
		}
		most = math.Max(most, v)
	}
	if len(l.Trace) > 0 && most == 0 {
		return trimtab.Invalidf("load: trace is 0 everywhere")
	}
	return nil
}

func (s *Service) validate(hosts map[string]*Host, used map[string]float64) error {
	if err := check("service", bounded{"max_load", s.MaxLoad, 1e-3, 1e9}, bounded{"slo_s", s.SLO, 0, 1e6},
		bounded{"number of components", float64(len(s.Components)), 1, maxComponents}); err != nil {
		return err
	}
	known := map[string]bool{}
	for i := range s.Components {
		c := &s.Components[i]
		switch {
		case c.Name == "" || known[c.Name]:
			return trimtab.Invalidf("components[%d]: name %.60q: want one of its own", i, c.Name)
		case hosts[c.Host] == nil:
			return trimtab.Invalidf("component %.60q: host %.60q is not one of hosts", c.Name, c.Host)
		}
		known[c.Name] = true
		used[c.Host] += c.Cores
		if err := c.validate(); err != nil {
			return err
		}
	}
	calls := 0
	if err := s.Call.validate(known, &calls); err != nil {
		return err
	}
	for i := range s.Components {
		c := &s.Components[i]
		if rho := s.MaxLoad * s.Call.visits(c.Name) * c.Mean / float64(c.Servers); rho >= 1 {
			return trimtab.Invalidf("component %.60q: %.2f of its servers are busy at max_load: want less than 1", c.Name, rho)
		}
	}
	return nil
}

func (c *Component) validate() error {
	where := fmt.Sprintf("component %.60q", c.Name)
	if err := check(where, bounded{"service_s", c.Mean, 1e-9, 1e4}, bounded{"cv", c.CV, 0, 10}, bounded{"floor_s", c.Floor, 0, 1e4},
		bounded{"servers", float64(c.Servers), 1, maxServers}, bounded{"cores", c.Cores, 0.1, 4096}, bounded{"membw", c.Bandwidth, 0, 1},
		bounded{"memory_bytes", c.Memory, 0, 1 << 50}, bounded{"network_bytes_per_s", c.Network, 0, 1e13}); err != nil {
		return err
	}
	left := len(c.Sensitivity)
	for _, r := range resources() {
		s, ok := c.Sensitivity[r]
		if !ok {
			continue
		}
		left--
		if err := check(where+" sensitivity "+r, bounded{"slowdown", s.Slowdown, 0, 1e3}, bounded{"stall", s.Stall, 0, 1}, bounded{"pause_s", s.Pause, 0, 1e4}); err != nil {
			return err
		}
	}
	if left > 0 {
		return trimtab.Invalidf("%s: sensitivity: want only %v", where, resources())
	}
	return nil
}

func (c *Call) validate(known map[string]bool, calls *int) error {
	if *calls++; *calls > maxCalls {
		return trimtab.Invalidf("call: more than %d calls a request", maxCalls)
	}
	if !known[c.Component] {
		return trimtab.Invalidf("call: component %.60q is not one of the service's", c.Component)
	}
	if err := check("call of "+c.Component, bounded{"share", c.Share, 0, 1}); err != nil {
		return err
	}
	for _, stage := range c.Stages {
		for i := range stage {
			if err := stage[i].validate(known, calls); err != nil {
				return err
			}
		}
	}
	return nil
}

// visits is how often a request visits a component, on average.
func (c *Call) visits(name string) float64 {
	n := 0.0
	if c.Component == name {
		n = 1
	}
	for _, stage := range c.Stages {
		for i := range stage {
			n += stage[i].visits(name)
		}
	}
	if c.Share > 0 {
		n *= c.Share
	}
	return n
}

// at returns the load of a period of a run of so many, as a share of the maximum.
func (l *Load) at(period, periods int) float64 {
	if n := len(l.Levels); n > 0 {
		return l.Levels[min(n-1, period*n/periods)]
	}
	most := 0.0
	for _, v := range l.Trace {
		most = math.Max(most, v)
	}
	peak := l.Peak
	if peak == 0 {
		peak = 1
	}
	x := (float64(period) + 0.5) / float64(periods) * float64(len(l.Trace)-1)
	i := int(x)
	v := l.Trace[i]
	if i+1 < len(l.Trace) {
		v += (x - float64(i)) * (l.Trace[i+1] - v)
	}
	return peak * v / most
}
