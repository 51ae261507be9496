// Package concurrency computes how many requests of a workload may be in service at once: as many
// as its allocation serves within the SLO, by Little's law.
//
//	limit = a × u / c × t      a allocation, in cores
//	                           u highest use at which the SLO is met, (0, 1]
//	                           c CPU time of a request, in seconds
//	                           t time of a request in service, in seconds
//
// a × u / c is the rate that the allocation serves within the SLO. The workload's curve needs k ×
// (l + h) cores for load l, so that the rate is a/k − h, and at most a/c. t is the 95th percentile
// of the latency, smoothed, from reports that met the SLO: during an overload t grows with the
// limit, and would justify any limit.
//
// Without k and t there is no limit. Once known, they are kept: an overload shows neither. Requests
// beyond the limit wait before the workload or are refused there, by whatever enforces the limit.
package concurrency

import (
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/measured"
)

// State is what reports have shown of a workload.
type State struct {
	// Time is t; 0: no report has met the SLO yet.
	Time trimtab.Seconds `json:"time_s,omitempty"`
	// Need is k, the cores that one request per second needs to meet the SLO; 0: unknown. Idle is
	// h, in requests per second.
	Need float64 `json:"need,omitempty"`
	Idle float64 `json:"idle,omitempty"`
}

// Valid reports whether a stored state is valid.
func (s *State) Valid() bool {
	for _, v := range []float64{float64(s.Time), s.Need, s.Idle} {
		if !(v >= 0 && v <= math.MaxFloat64) {
			return false
		}
	}
	return true
}

// smooth is the weight of a new value in the smoothed t.
const smooth = 0.2

// Observe learns from a report of a workload with the given SLO. It learns nothing from a held
// estimate.
func (s *State) Observe(e *trimtab.Estimate, slo float64) {
	if e.Hold != nil || e.Fallback != "" || e.Validate() != nil {
		return
	}
	if t, ok := e.Latency["p95"]; ok && t > 0 && e.Performance != nil && !measured.Misses(e, slo) && e.Starved == 0 {
		if s.Time == 0 {
			s.Time = t
		}
		s.Time += smooth * (t - s.Time)
	}
	if c := e.Curve; c != nil {
		load := c.Load + c.Headroom
		if a := c.Least(1, slo, func(b trimtab.Band) float64 { return b.Mean }); a > 0 && load > 0 && a/load <= math.MaxFloat64 {
			s.Need, s.Idle = a/load, c.Headroom
		}
	}
}

// Limit is a number of requests in service, with the values that it follows from.
type Limit struct {
	// Requests is the limit. Rate is the load that the allocation serves within the SLO, in
	// requests per second.
	Requests, Rate float64
	// Allocation and Time are a and t. Cost is c; 0: unknown.
	Allocation, Cost float64
	Time             trimtab.Seconds
}

// For returns the limit of an allocation. cost is the CPU time of a request, nil if unknown. It
// returns false if the limit is unknown.
func (s *State) For(allocation float64, cost *float64) (l Limit, ok bool) {
	if s.Time == 0 || s.Need == 0 || !(allocation > 0) {
		return Limit{}, false
	}
	l = Limit{Allocation: allocation, Time: s.Time, Rate: allocation/s.Need - s.Idle}
	if cost != nil && *cost > 0 {
		l.Cost, l.Rate = *cost, math.Min(l.Rate, allocation / *cost)
	}
	l.Requests = math.Ceil(l.Rate * float64(l.Time))
	return l, l.Requests >= 1 && l.Requests <= math.MaxInt32
}

// Words returns the explanation of the limit; resource is the name of the allocation's resource.
func (l *Limit) Words(resource string) string {
	has := fmt.Sprintf("%.3g %s", l.Allocation, trimtab.ResourceOf(resource).Unit)
	serves := fmt.Sprintf("%s serve %.3g requests/s in time", has, l.Rate)
	if l.Cost > 0 {
		serves = fmt.Sprintf("%s at %.0f%% use and %.3gms of CPU time a request serve %.3g requests/s in time", has, 100*l.Rate*l.Cost/l.Allocation, 1000*l.Cost, l.Rate)
	}
	return fmt.Sprintf("%s, each of which takes %.3gms", serves, 1000*float64(l.Time))
}
