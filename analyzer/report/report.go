package report

import (
	"time"

	"github.com/trimtab/trimtab"
)

// Report is the observation of a workload during one interval. Nil pointers are missing values.
type Report struct {
	At   time.Time // the interval's end; zero: no report yet
	Load *float64
	// Now is the load at the end of the interval, if Load is that of a longer time.
	Now         *float64
	LoadFrom    string
	LoadAt      time.Time
	Performance *float64
	// Requests is the number of requests of which Performance is a fraction. Fresh is how many of
	// them were in no earlier report, since windows overlap.
	Requests, Fresh float64
	// Refused is how many requests per second a gate did not pass on, by class: part of Load.
	Refused map[string]float64
	// Window is the time before PerfAt that the performance covers; 0: the interval.
	Window     time.Duration
	Sigma      float64
	PerfFrom   string
	PerfAt     time.Time
	Allocation *float64
	AllocFrom  string
	AllocAt    time.Time
	NoAlloc    string // why Allocation is missing
	Latency    map[string]trimtab.Seconds
	Slowest    []trimtab.Exemplar
	// Fixed is the fraction of its time in which a fast loop left the quota at its target.
	Fixed float64
	// Aside is why the curve did not learn from it; "": it did.
	Aside string
}

const (
	// Enough is the number of requests from which on a rate has a standard error of at most 10%.
	Enough = 100
	// Remembered is the time constant over which the loads of instances and the cost of a request
	// are averaged.
	Remembered = 30 * time.Second
)
