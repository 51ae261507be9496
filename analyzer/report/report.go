package report

import (
	"time"

	"github.com/trimtab/trimtab"
)

// Report is the observation of one interval. Nil pointers are missing values.
type Report struct {
	At   time.Time // the interval's end; zero: no report yet
	Load *float64
	// Now is the load at the end of the interval, where Load is of a longer time.
	Now         *float64
	LoadFrom    string
	LoadAt      time.Time
	Performance *float64
	// Requests is how many requests Performance is the share of; Fresh is how many of them were
	// in no earlier report, since windows overlap.
	Requests, Fresh float64
	// Window is how long before its time the performance covers; 0: the interval.
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
	// Fixed is the share of its time in which a fast loop was to leave the quota at its
	// target.
	Fixed float64
	// Aside is why it did not teach the curve.
	Aside string
}

const (
	// Enough requests make a rate good to 10%.
	Enough = 100
	// Remembered is the time over which loads of instances, and the cost of a
	// request, are averaged.
	Remembered = 30 * time.Second
)
