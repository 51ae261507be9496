package services

import (
	"math"
	"strings"

	"github.com/trimtab/trimtab"
)

// Scenario is a pool, the services in it, and how long it runs.
type Scenario struct {
	Name string
	// Pool is the capacity in cores, Seconds the length.
	Pool     float64
	Seconds  int
	Services []Service
}

// three are the services of the benchmark on real software: a web server that
// compresses, a store that sorts in one thread, a database.
func three() []Service {
	return []Service{
		{Name: "nginx", Cost: 0.012, Spread: 0.1, Servers: 1, Concurrency: 1, Latency: 0.2, Fraction: 0.95},
		{Name: "postgres", Cost: 0.014, Spread: 0.2, Servers: 2, Concurrency: 8, Latency: 0.3, Fraction: 0.95},
		{Name: "redis", Cost: 0.010, Spread: 0.1, Servers: 1, Concurrency: 1, Latency: 0.25, Fraction: 0.95},
	}
}

// pool is what they share, in cores.
const pool = 0.66

// shares gives service i the load that needs a share of the pool at t.
func shares(name string, seconds int, share func(i int, t float64) float64) Scenario {
	s := Scenario{Name: name, Pool: pool, Seconds: seconds, Services: three()}
	for i := range s.Services {
		v := &s.Services[i]
		v.Load = func(t float64) float64 { return share(i, t) * pool / v.Cost }
	}
	return s
}

// Scenarios returns the scenarios of the benchmark on real services, scaled to
// the given length.
func Scenarios(seconds int) []Scenario {
	length := float64(seconds)
	third := length / 3
	out := []Scenario{
		shares("peaks", seconds, func(i int, t float64) float64 {
			// The peak passes from one service to the next, once in a run.
			d := math.Mod(t-third*(float64(i)+0.5)+1.5*length, length) - length/2
			return 0.07 + 0.33*math.Pow(math.Max(0, math.Cos(math.Pi*d/(1.5*third))), 2)
		}),
		shares("steps", seconds, func(i int, t float64) float64 {
			k := int(t/third*2) % 6
			return [3][6]float64{{0.4, 0.08, 0.08, 0.2, 0.08, 0.35}, {0.08, 0.35, 0.08, 0.2, 0.1, 0.1}, {0.08, 0.08, 0.4, 0.1, 0.4, 0.08}}[i][k]
		}),
		shares("doubling", seconds, func(i int, t float64) float64 {
			if i == 0 && t >= third {
				return 0.3
			}
			return 0.15
		}),
		shares("slower", seconds, func(i int, t float64) float64 { return [3]float64{0.22, 0.14, 0.14}[i] }),
		shares("noise", seconds, func(i int, t float64) float64 { return 0.15 }),
	}
	out[3].Services[0].Dearer = func(t float64) float64 {
		if t >= length/2 {
			return 1.3
		}
		return 1
	}
	return out
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
