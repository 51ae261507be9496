package demo

import (
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/demo/loadgen"
	"github.com/trimtab/trimtab/internal/demo/service"
)

// The knobs.
const (
	KnobCgroup  = "cgroup"
	KnobProcess = "process"
)

// Setup is everything that a pipeline needs to know of the demo.
type Setup struct {
	// Pool names the pool.
	Pool string
	// Knob is KnobCgroup or KnobProcess; Resource is the resource that it sets, "cpu" in cores or
	// "workers" in processes.
	Knob, Resource string
	// Capacity is the capacity that the services share, Unit the step of planning, both in the unit
	// of Resource.
	Capacity, Unit float64
	// Round is how often to plan.
	Round time.Duration
	// Objective is the name of the objective to plan for.
	Objective string
	// OTLP is host:port on loopback where the services send their spans over
	// gRPC without TLS: the pipeline must listen there.
	OTLP string
	// Root is the directory that the services' handles are relative to: of the
	// cgroup hierarchy, or of the supervisors' directories.
	Root string
	// Services share the pool. They are in the order of the table.
	Services []*Service
}

// Service is one of the workloads.
type Service struct {
	Name string
	SLO  SLO
	// Min and Max bound the allocation, Equal is its equal share and the
	// baseline that trimtab finds and restores.
	Min, Max, Equal float64
	// Spans are the resource attributes that its spans carry.
	Spans map[string]string
	// Components are its processes' configurations; requests enter at the
	// first. Under KnobProcess the first is what runs as several workers, and
	// the others run once.
	Components []service.Config
	// Day is the load at the first component.
	Day loadgen.Day
	// Handle is the path of the knob, below Setup.Root: as actuator/cgroup's Config.Path or
	// actuator/process's Config.Dir.
	Handle string
}

// SLO is the objective of a service: the fraction of requests, in (0, 1), that must be answered
// within the latency.
type SLO struct {
	Latency  time.Duration
	Fraction float64
}

// URL returns the address to which the service's requests go.
func (s *Service) URL() string { return "http://" + s.Components[0].Listen + "/" }

// kind describes a service before it is sized to the pool.
type kind struct {
	name       string
	latency    time.Duration
	base, peak float64 // load as shares of the pool
	at         float64
	components []service.Config
}

const (
	// fraction is every SLO's.
	fraction = 0.9
	// peakWidth equals the distance of the peaks, so that the services' raised
	// cosines add up to an almost even load.
	peakWidth = 0.3
	// overhead is the CPU time that receiving, tracing and answering a request
	// costs a component on the reference machine.
	overhead = 650 * time.Microsecond
)

const ms = time.Millisecond

// kinds are the three services. shop is two components that call each other;
// its queue is patient, so that it breaks down steeply. search drops what
// waited too long, so that it degrades in proportion. thumbs is slow, heavy
// work and mostly waits, and gets by with an equal share.
func kinds(knob string) []kind {
	if knob == KnobProcess {
		return workerKinds()
	}
	return []kind{
		{name: "shop", latency: 300 * ms, base: 0.11, peak: 0.47, at: 0.2, components: []service.Config{
			component("shop-front", 2*ms, 10*ms, 2*time.Second), component("shop-stock", 2*ms, 5*ms, 2*time.Second)}},
		{name: "search", latency: 250 * ms, base: 0.11, peak: 0.45, at: 0.5, components: []service.Config{
			{Name: "search", CPU: service.Draw{Mean: 5 * ms, CoV: 1}, Wait: service.Draw{Mean: 5 * ms, CoV: 0.5}, Queue: 64, Patience: 230 * ms}}},
		{name: "thumbs", latency: 500 * ms, base: 0.09, peak: 0.24, at: 0.8, components: []service.Config{
			component("thumbs", 10*ms, 60*ms, time.Second)}},
	}
}

// workerKinds are the same services with little work and much waiting: what a
// worker that serves one request at a time is limited by is time, so that many
// of them fit on few cores.
func workerKinds() []kind {
	return []kind{
		{name: "shop", latency: 500 * ms, base: 0.1, peak: 0.47, at: 0.2, components: []service.Config{
			component("shop-front", 2*ms, 40*ms, 2*time.Second), component("shop-stock", ms, 20*ms, 2*time.Second)}},
		{name: "search", latency: 400 * ms, base: 0.1, peak: 0.45, at: 0.5, components: []service.Config{
			component("search", 2*ms, 60*ms, 350*ms)}},
		{name: "thumbs", latency: 600 * ms, base: 0.1, peak: 0.24, at: 0.8, components: []service.Config{
			component("thumbs", 4*ms, 80*ms, time.Second)}},
	}
}

// component returns one whose times vary moderately.
func component(name string, cpu, wait, patience time.Duration) service.Config {
	return service.Config{Name: name, CPU: service.Draw{Mean: cpu, CoV: 0.5}, Wait: service.Draw{Mean: wait, CoV: 0.4}, Queue: 64, Patience: patience}
}

// NewSetup sizes the demo for the machine. Addresses are not yet chosen.
func NewSetup(m Machine, knob string, seed uint64) (*Setup, error) {
	if !(m.Free > 0 && m.Speed > 0) {
		return nil, trimtab.Invalidf("size demo for %v: want positive figures", m)
	}
	s := &Setup{Pool: "demo", Knob: knob, Objective: "egalitarian", Round: time.Second}
	switch knob {
	case KnobCgroup:
		// A third of the machine is left for load, trimtab and other programs. Below 0.6 cores
		// the kernel's quota periods would outweigh the load; a busy machine is measured to have
		// less free than that, and 0.6 is taken all the same.
		s.Resource, s.Unit = trimtab.CPU, 0.01
		s.Capacity = round9(float64(int(max(0.6, min(1.2, 0.62*m.Free))/0.03+1e-9)) * 0.03)
	case KnobProcess:
		s.Resource, s.Unit, s.Capacity = trimtab.Workers, 1, 18
	default:
		return nil, trimtab.Invalidf("knob %.40q: want %s or %s", knob, KnobCgroup, KnobProcess)
	}
	for i, k := range kinds(knob) {
		s.Services = append(s.Services, s.sized(k, m, seed+uint64(i)))
	}
	return s, nil
}

// sized converts a kind into a service of this pool.
func (s *Setup) sized(k kind, m Machine, seed uint64) *Service {
	out := &Service{
		Name: k.name, SLO: SLO{Latency: k.latency, Fraction: fraction},
		Equal: s.Capacity / 3, Min: s.Capacity / 8, Max: s.Capacity * 0.8,
		Spans: map[string]string{"service.namespace": k.name},
	}
	// A small pool gets smaller requests, not fewer: else one request would outlast a small quota
	// by periods. Workers keep about 0.9 cores busy in all; if that is too much, everything waits
	// longer.
	scale, stretch := 1.0, 1.0
	if s.Knob == KnobCgroup {
		scale = max(0.5, min(1, s.Capacity/1.2))
	} else {
		stretch = max(1, min(2, 1.6/m.Free))
	}
	out.SLO.Latency = time.Duration(float64(out.SLO.Latency) * stretch).Round(time.Millisecond)
	extra := overhead.Seconds() * referenceSpeed / m.Speed
	var cost float64 // of a request, in seconds of the resource
	for i, c := range k.components {
		c.Workload, c.Seed, c.Slots = k.name, seed*16+uint64(i), 1
		c.CPU.Mean = time.Duration(float64(c.CPU.Mean) * scale)
		c.Wait.Mean = time.Duration(float64(c.Wait.Mean) * stretch)
		c.Patience = time.Duration(float64(c.Patience) * stretch)
		cpu := c.CPU.Mean.Seconds() + extra
		switch {
		case s.Knob == KnobCgroup:
			cost += cpu
		case i == 0:
			// Its worker serves one connection at a time, to the end.
			cost += cpu + c.Wait.Mean.Seconds()
		default:
			c.Slots = 64
			cost += cpu + c.Wait.Mean.Seconds()
		}
		out.Components = append(out.Components, c)
	}
	if s.Knob == KnobProcess {
		out.Min, out.Max = 2, s.Capacity-4
	} else if len(out.Components) > 1 {
		// The second component calls back, which costs the first one again.
		cost += out.Components[0].CPU.Mean.Seconds() + extra
	}
	perCost := s.Capacity / cost
	out.Day = loadgen.Day{Base: k.base * perCost, Peak: k.peak * perCost, At: k.at, Width: peakWidth}
	return out
}
