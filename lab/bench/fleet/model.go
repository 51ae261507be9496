package main

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
)

// What all workloads have in common. A request costs cost seconds of a core, and
// should be answered within threshold; target is the share that should.
const (
	cost       = 0.01
	threshold  = 200 * time.Millisecond
	target     = 0.9
	firstCores = 0.5
	leastCores = 0.05
	mostCores  = 1.0
	// day is how long a load takes to come back to where it was.
	day = 10 * time.Minute
)

// demand is the load of each instance of workload i at a time, in cores: a base from 0.15 to 0.55,
// by 30% up and down.
func demand(i int, t time.Time) float64 {
	base := 0.15 + 0.4*float64(i*7%10)/9
	phase := float64(i%97) / 97
	return base * (1 + 0.3*math.Sin(2*math.Pi*(t.Sub(time.Unix(0, 0)).Seconds()/day.Seconds()+phase)))
}

// observation is what one instance, or all of a workload, did in one interval.
type observation struct {
	load, requests, share, used, throttled float64
}

// observe is the queue behind a knob that gives a cores: Poisson arrivals at rate
// λ, exponential service at rate μ = a/cost, so that (M/M/1)
//
//	P(time in system ≤ t) = 1 − exp(−(μ − λ) t)   for λ < μ,
//
// and nobody is in time otherwise. The share is counted over the requests of the
// interval, with the noise of that many.
func observe(i int, a float64, end time.Time, interval time.Duration, random *rand.Rand) observation {
	d := demand(i, end.Add(-interval/2))
	o := observation{load: d / cost, used: min(a, d), throttled: min(1, max(0, 2*(d/a-0.5)))}
	o.requests = math.Round(o.load * interval.Seconds())
	p := 0.0
	if d < a {
		p = 1 - math.Exp(-(a-d)/cost*threshold.Seconds())
	}
	if o.requests > 0 {
		p += random.NormFloat64() * math.Sqrt(p*(1-p)/o.requests)
	}
	o.share = min(1, max(0, p))
	return o
}

// and is what two instances did together.
func (o observation) and(p observation) observation {
	if n := o.requests + p.requests; n > 0 {
		o.share = (o.share*o.requests + p.share*p.requests) / n
	}
	o.load, o.requests, o.used = o.load+p.load, o.requests+p.requests, o.used+p.used
	return o
}

// ofCollector are the samples that a collector has of it from Prometheus.
func (o observation) ofCollector(i int, end time.Time, interval time.Duration) []*trimtab.Sample {
	s := trimtab.Sample{Workload: workloadName(i), Source: "prometheus", Time: end, Window: trimtab.SecondsOf(interval)}
	load, performance := s, s
	load.Quantity, load.Value = quantity.Load, o.load
	performance.Quantity, performance.Value, performance.Requests = quantity.Performance, o.share, o.requests
	return []*trimtab.Sample{&load, &performance}
}

// ofAgent are the samples that an agent has of it from its cgroup.
func (o observation) ofAgent(k *knob, a float64, end time.Time, interval time.Duration) []*trimtab.Sample {
	s := trimtab.Sample{Workload: k.workload, Host: k.host, Source: "cgroup", Time: end, Window: trimtab.SecondsOf(interval)}
	usage, throttled, allocation := s, s, s
	usage.Quantity, usage.Value = quantity.Usage, o.used
	throttled.Quantity, throttled.Value = quantity.Throttled, o.throttled
	allocation.Quantity, allocation.Value, allocation.Window = quantity.Allocation, a, 0
	return []*trimtab.Sample{&usage, &throttled, &allocation}
}
