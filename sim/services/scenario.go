package services

import (
	"math"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/sim/services/shape"
)

// Scenario is a pool, the services in it, and how long it runs.
type Scenario struct {
	Name string
	// Pool is the capacity in cores, Seconds the length.
	Pool     float64
	Seconds  int
	Services []Service
	// Fault is what of service i fails in the second that ends at t; nil: nothing.
	Fault func(i int, t float64) Fault
}

// Fault is a signal that fails.
type Fault int

// Faults: none; no spans and no answers to queries; no counters of the group;
// neither; every second span or scrape target is lost.
const (
	None Fault = iota
	NoRequests
	NoCounters
	Nothing
	Half
)

// Faults are those that exist, by name.
func Faults() map[string]Fault {
	return map[string]Fault{"no requests": NoRequests, "no counters": NoCounters, "nothing": Nothing, "half": Half}
}

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
// the given length.
func Scenarios(seconds int) []Scenario {
	var out []Scenario
	for _, of := range shape.All() {
		if of.Two {
			continue // there is one host here
		}
		out = append(out, Of(of, pool, time.Duration(seconds)*time.Second))
	}
	return out
}

// Of is a scenario of three services, whose costs may still be changed, in a pool of so many
// cores, over a length.
func Of(of shape.Scenario, pool float64, whole time.Duration) Scenario {
	s := Scenario{Name: of.Name, Pool: pool, Seconds: int(math.Ceil(whole.Seconds())), Services: three()}
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
