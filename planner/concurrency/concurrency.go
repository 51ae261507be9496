// Package concurrency computes how many requests of a workload may be admitted per second, and how
// many may be in service at once: as many as its allocation serves within the SLO, by Little's law.
//
//	rate  = a × u / c      a allocation, in cores
//	limit = rate × t       u highest use at which the SLO is met, (0, 1]
//	                       c CPU time of a request, in seconds
//	                       t time of a request in service, in seconds
//
// The workload's curve needs k × (l + h) cores for load l, so that the rate is a/k − h, and at most
// a/c. t is the 95th percentile of the latency, smoothed, from reports that met the SLO while nobody
// was refused, or from the first one that met it: during an overload t grows with the limit, and would justify any limit.
//
// The 95th percentile leaves room for a rule that lowers the limit by what it sees, as a gate's does.
// A proxy keeps the limit that it is told, and with so many in service it would not matter which
// request comes first. There t is at most max(1.5 × median, SLO / 8), the target of the gate's rule
// (planner/admission).
//
// Without k there is no rate, and without k and t no limit. Once known, they are kept: an overload
// shows neither. Requests beyond the limit wait before the workload or are refused there, by whatever
// enforces the limit.
package concurrency

import (
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/measured"
)

// State is what reports have shown of a workload.
type State struct {
	// Time is the smoothed 95th percentile; 0: no report has met the SLO yet. Median is the smoothed
	// median; 0: unknown.
	Time   trimtab.Seconds `json:"time_s,omitempty"`
	Median trimtab.Seconds `json:"median_s,omitempty"`
	// Need is k, the cores that one request per second needs to meet the SLO; 0: unknown. Idle is
	// h, in requests per second.
	Need float64 `json:"need,omitempty"`
	Idle float64 `json:"idle,omitempty"`
}

// Valid reports whether a stored state is valid.
func (s *State) Valid() bool {
	for _, v := range []float64{float64(s.Time), float64(s.Median), s.Need, s.Idle} {
		if !(v >= 0 && v <= math.MaxFloat64) {
			return false
		}
	}
	return true
}

const (
	// smooth is the weight of a new value in a smoothed one.
	smooth = 0.2
	// slack is t over the median, and part t over the latency of the SLO, in a proxy.
	slack, part = 1.5, 1.0 / 8
)

// Observe learns from a report of a workload with the given SLO. It learns nothing from a held
// estimate.
func (s *State) Observe(e *trimtab.Estimate, slo float64) {
	if e.Hold != nil || e.Fallback != "" || e.Validate() != nil {
		return
	}
	if e.Performance != nil && !measured.Misses(e, slo) && e.Starved == 0 && (e.Shed() == 0 || s.Time == 0) {
		average(&s.Time, e.Latency["p95"])
		average(&s.Median, e.Latency["p50"])
	}
	if c := e.Curve; c != nil {
		load := c.Load + c.Headroom
		if a := c.Least(1, slo, func(b trimtab.Band) float64 { return b.Mean }); a > 0 && load > 0 && a/load <= math.MaxFloat64 {
			s.Need, s.Idle = a/load, c.Headroom
		}
	}
}

// average moves a smoothed value towards t; 0: there is none.
func average(smoothed *trimtab.Seconds, t trimtab.Seconds) {
	if *smoothed == 0 {
		*smoothed = t
	}
	if t > 0 {
		*smoothed += smooth * (t - *smoothed)
	}
}

// time returns t for a limit that is kept as it is, by a proxy, for a latency of the SLO; 0: a rule
// corrects the limit.
func (s *State) time(within trimtab.Seconds) trimtab.Seconds {
	if within == 0 || s.Median == 0 {
		return s.Time
	}
	return min(s.Time, max(slack*s.Median, part*within))
}

// Resources lists the resources that limits are of.
func Resources() []string { return []string{trimtab.Concurrency, trimtab.Rate} }

// Limit is a limit of requests, with the values that it follows from.
type Limit struct {
	// Resource is one of [Resources], and Amount the limit of it. Rate is the load that the
	// allocation serves within the SLO, in requests per second.
	Resource     string
	Amount, Rate float64
	// Allocation and Time are a and t. Cost is c; 0: unknown.
	Allocation, Cost float64
	Time             trimtab.Seconds
}

// For returns the limit of one of [Resources] for an allocation. within is the latency of the SLO if a
// proxy keeps the limit as it is, 0 if a rule corrects it. cost is the CPU time of a request, nil if
// unknown. For returns false if the limit is unknown, or not above 0: then l.Allocation tells
// the two apart, which is 0 if the limit is unknown.
func (s *State) For(resource string, allocation float64, within trimtab.Seconds, cost *float64) (l Limit, ok bool) {
	if s.Need == 0 || !(allocation > 0) || resource == trimtab.Concurrency && s.Time == 0 {
		return Limit{}, false
	}
	l = Limit{Resource: resource, Allocation: allocation, Time: s.time(within), Rate: allocation/s.Need - s.Idle}
	if cost != nil && *cost > 0 {
		l.Cost, l.Rate = *cost, math.Min(l.Rate, allocation / *cost)
	}
	if l.Amount = l.Rate; resource == trimtab.Concurrency {
		l.Amount *= float64(l.Time)
	}
	l.Amount = Round(resource, l.Amount)
	return l, l.Amount > 0 && l.Amount <= math.MaxInt32
}

// Round returns the least limit of a resource that is no lower than v and that people would write: a
// whole number of requests in service, a rate with three digits.
func Round(resource string, v float64) float64 {
	if step := trimtab.ResourceOf(resource).Step; step < 1 && v > 0 {
		digits := max(0, 2-int(math.Floor(math.Log10(v))))
		ten := math.Pow10(min(digits, 3))
		return math.Ceil(v*ten-1e-9) / ten
	}
	return math.Ceil(v)
}

// nearBy is the relative difference between a derived limit and the current one up to which the
// limit stays as it is.
const nearBy = 0.1

// Near reports whether a derived limit is near enough to the current one for that to stay.
func Near(resource string, now, derived float64) bool {
	return math.Abs(derived-now) <= math.Max(trimtab.ResourceOf(resource).Step, nearBy*now)
}

// Counted names what a limit of a resource counts.
func Counted(resource string) string {
	if resource == trimtab.Rate {
		return "requests per second"
	}
	return "requests in service"
}

// Words returns the explanation of the limit; resource is the name of the allocation's resource.
func (l *Limit) Words(resource string) string {
	has := fmt.Sprintf("%.3g %s", l.Allocation, trimtab.ResourceOf(resource).Unit)
	serves := fmt.Sprintf("%s serve %.3g requests/s in time", has, l.Rate)
	if l.Cost > 0 {
		serves = fmt.Sprintf("%s at %.0f%% use and %.3gms of CPU time a request serve %.3g requests/s in time", has, 100*l.Rate*l.Cost/l.Allocation, 1000*l.Cost, l.Rate)
	}
	if l.Resource == trimtab.Rate {
		return serves
	}
	return fmt.Sprintf("%s, each of which takes %.3gms", serves, 1000*float64(l.Time))
}
