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
	// Knob is KnobCgroup or KnobProcess; Resource is what it turns, "cpu" in
	// cores or "workers" in processes.
	Knob, Resource string
	// Capacity is what the services share, and Unit the step to plan in, both
	// in the unit of Resource.
	Capacity, Unit float64
	// Round is how often to plan.
	Round time.Duration
	// Objective is the name of the objective to plan for.
	Objective string
	// OTLP is host:port on loopback where the services send their spans over
	// gRPC without TLS: the pipeline must listen there.
	OTLP string
	// Services share the pool. Their order is that of the table.
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
	// Handle is set by [Place.Add]: what a pipeline needs to turn the knob,
	// such as the path of the cgroup below the hierarchy's root.
	Handle string
}

// SLO is what is asked of a service: the fraction of requests, in (0, 1), that
// must be answered within the latency.
type SLO struct {
	Latency  time.Duration
	Fraction float64
}

// URL is where the service's requests go.
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
	overhead = 350 * time.Microsecond
)

// kinds are the three services. shop is two components that call each other;
// its queue is patient, so that it breaks down steeply. search drops what
// waited too long, so that it degrades in proportion. thumbs is slow, heavy
// work and mostly waits, and gets by with an equal share.
func kinds() []kind {
	const ms = time.Millisecond
	return []kind{
		{name: "shop", latency: 300 * ms, base: 0.11, peak: 0.43, at: 0.2, components: []service.Config{
			{Name: "shop-front", CPU: service.Draw{Mean: 2 * ms, CoV: 0.5}, Wait: service.Draw{Mean: 10 * ms, CoV: 0.5}, Queue: 64, Patience: 2 * time.Second},
			{Name: "shop-stock", CPU: service.Draw{Mean: 2 * ms, CoV: 0.5}, Wait: service.Draw{Mean: 5 * ms, CoV: 0.5}, Queue: 64, Patience: 2 * time.Second},
		}},
		{name: "search", latency: 250 * ms, base: 0.11, peak: 0.42, at: 0.5, components: []service.Config{
			{Name: "search", CPU: service.Draw{Mean: 5 * ms, CoV: 1}, Wait: service.Draw{Mean: 5 * ms, CoV: 0.5}, Queue: 64, Patience: 230 * ms},
		}},
		{name: "thumbs", latency: 500 * ms, base: 0.11, peak: 0.24, at: 0.8, components: []service.Config{
			{Name: "thumbs", CPU: service.Draw{Mean: 10 * ms, CoV: 0.5}, Wait: service.Draw{Mean: 60 * ms, CoV: 0.5}, Queue: 64, Patience: time.Second},
		}},
	}
}

// NewSetup sizes the demo for the machine. Addresses are not yet chosen.
func NewSetup(m Machine, knob string, seed uint64) (*Setup, error) {
	s := &Setup{Pool: "demo", Knob: knob, Objective: "egalitarian", Round: time.Second}
	switch knob {
	case KnobCgroup:
		// A third of the machine stays for load, trimtab and everybody else.
		s.Resource, s.Unit = "cpu", 0.01
		s.Capacity = float64(int(min(1.2, 0.62*m.Free)/0.03)) * 0.03
	case KnobProcess:
		s.Resource, s.Unit, s.Capacity = "workers", 1, 18
	default:
		return nil, trimtab.Invalidf("knob %.40q: want %s or %s", knob, KnobCgroup, KnobProcess)
	}
	if s.Capacity < 0.15 {
		return nil, trimtab.Invalidf("%v: too little for a demo", m)
	}
	for i, k := range kinds() {
		s.Services = append(s.Services, s.sized(k, m, seed+uint64(i)))
	}
	return s, nil
}

// sized turns a kind into a service of this pool.
func (s *Setup) sized(k kind, m Machine, seed uint64) *Service {
	out := &Service{
		Name: k.name, SLO: SLO{Latency: k.latency, Fraction: fraction},
		Equal: s.Capacity / 3, Min: s.Capacity / 24, Max: s.Capacity * 0.8,
		Spans: map[string]string{"service.namespace": k.name},
	}
	var cost float64 // of a request, in seconds of the resource
	for i, c := range k.components {
		c.Workload, c.Seed, c.Slots = k.name, seed*16+uint64(i), 1
		cpu := c.CPU.Mean.Seconds() + overhead.Seconds()*referenceSpeed/m.Speed
		switch {
		case s.Knob == KnobCgroup:
			cost += cpu
		case i == 0:
			c.Share, c.Hold = true, true
			cost += cpu + c.Wait.Mean.Seconds()
		default:
			c.Slots = 64
			cost += cpu + c.Wait.Mean.Seconds()
		}
		out.Components = append(out.Components, c)
	}
	if s.Knob == KnobProcess {
		out.Min = 1
		out.Max = s.Capacity - 4
	} else if len(out.Components) > 1 {
		// The second component calls back, which costs the first one again.
		cost += k.components[0].CPU.Mean.Seconds() + overhead.Seconds()*referenceSpeed/m.Speed
	}
	perCost := s.Capacity / cost
	out.Day = loadgen.Day{Base: k.base * perCost, Peak: k.peak * perCost, At: k.at, Width: peakWidth}
	return out
}
