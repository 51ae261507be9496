package services

import (
	"math"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/lab/services/shape"
)

// Scenario is a pool, the services in it, and how long it runs.
type Scenario struct {
	Name string
	// Pool is the capacity in cores, Seconds the length.
	Pool     float64
	Seconds  int
	Services []Service
	// Places are where the instances of the services run, in order of service and host; nil:
	// each has one, on the only host. Each host has an equal part of the pool, and a load
	// balancer sends each request to the instance with the fewest open ones.
	Places []Place
	// Gated tells that an entitlement is worth what a service with a gate makes of it. Without one
	// it is worth nothing where more comes than it serves.
	Gated bool
	// Fault is what of service i fails in the second that ends at t; nil: nothing.
	Fault func(i int, t float64) Fault
}

// Place is where one instance of a service runs.
type Place struct{ Service, Host int }

// All are the places of all instances.
func (s *Scenario) All() []Place {
	if s.Places != nil {
		return s.Places
	}
	out := make([]Place, len(s.Services))
	for i := range out {
		out[i].Service = i
	}
	return out
}

// hosts is how many there are.
func (s *Scenario) hosts() int {
	n := 1
	for _, p := range s.Places {
		n = max(n, p.Host+1)
	}
	return n
}

// Share is the equal part of each instance of a service of what its host has.
func (s *Scenario) Share(k int) float64 {
	n, all := 0, s.All()
	for _, p := range all {
		if p.Host == all[k].Host {
			n++
		}
	}
	return s.Pool / float64(s.hosts()*n)
}

// Fault is a signal that fails.
type Fault int

// What fails: nothing; no spans and no answers to queries; no counters of the group;
// neither; every second span or scrape target is lost.
const (
	None Fault = iota
	NoRequests
	NoCounters
	Nothing
	Half
)

// three are the services of the benchmark on real software, in the order of
// [shape.Names]: a web server that compresses and a store that sorts, each in one
// thread, and a database.
func three() []Service {
	one, all := Service{Cost: 0.010, Spread: 0.1, Servers: 1, Concurrency: 1, Fraction: 0.95}, make([]Service, 3)
	for i, name := range shape.Names() {
		all[i] = one
		all[i].Name, all[i].Latency = name, [3]float64{0.2, 0.25, 0.3}[i]
	}
	all[2].Spread, all[2].Servers, all[2].Concurrency = 0.2, 2, 8
	return all
}

// pool is what they share, in cores.
const pool = 0.66

// Scenarios returns the scenarios of the benchmark on real services, scaled to
// the given length, but those whose services are other software: their loads are
// those of peaks and tight.
func Scenarios(seconds int) []Scenario {
	var out []Scenario
	for _, of := range shape.All() {
		if of.Mixed {
			continue
		}
		out = append(out, Of(of, pool, time.Duration(seconds)*time.Second))
	}
	return out
}

// Of is a scenario of three services, whose costs may still be changed, in a pool of so many
// cores, over a length.
func Of(of shape.Scenario, pool float64, whole time.Duration) Scenario {
	s := Scenario{Name: of.Name, Pool: pool, Seconds: int(math.Ceil(whole.Seconds())), Services: three()}
	if of.Two {
		s.Places = []Place{{0, 0}, {0, 1}, {1, 0}, {2, 1}}
	}
	at := func(t float64) time.Duration { return time.Duration(t * float64(time.Second)) }
	for i := range s.Services {
		v := &s.Services[i]
		v.Load = func(t float64) float64 { return of.Load(i, at(t), whole) * pool / v.Cost }
		v.Dearer = func(t float64) float64 { return of.Size(i, at(t), whole) }
	}
	return s
}

// Named returns a scenario by its name, scaled to a length in seconds.
func Named(name string, seconds int) (*Scenario, error) {
	all := Scenarios(seconds)
	known := make([]string, len(all))
	for i := range all {
		if known[i] = all[i].Name; known[i] == name {
			return &all[i], nil
		}
	}
	return nil, trimtab.Invalidf("scenario %.40q: want one of %s", name, strings.Join(known, ", "))
}
