package cilantro

import (
	"math"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
)

// The sizes of the paper's experiment (7.1): rounds of two minutes, a report
// every ten seconds.
const (
	// Windows is the number of reports in a round.
	Windows = 12
	// WindowSeconds is the length of a report.
	WindowSeconds = 10
	// Rounds and Capacity are the defaults: six hours, 1000 CPUs.
	Rounds, Capacity = 180, 1000
	// MostLoad bounds a job's load, in requests/s: beyond it, requests of a
	// window are no longer counted exactly.
	MostLoad = 1e9
)

// Environment is what all policies are run in.
type Environment struct {
	// Name says where it comes from.
	Name string
	// Jobs have unique names; they are kept in order of name.
	Jobs     []Job
	Profiles map[string]*Profile
	// Trace is the requests of each second, >= 0.
	Trace []float64
	// Offset is the second of the trace to start at, Rounds the length of the
	// run and Capacity what the jobs share, in units.
	Offset, Rounds, Capacity int
}

// Validate returns an error that is trimtab.ErrInvalid for anything that could
// not be run, and puts the jobs in order.
func (e *Environment) Validate() error {
	if len(e.Jobs) == 0 || e.Rounds < 1 || e.Offset < 0 {
		return invalidf(EnvironmentFault, "environment: %d jobs, %d rounds, offset %d", len(e.Jobs), e.Rounds, e.Offset)
	}
	if e.Capacity < len(e.Jobs) || e.Capacity > 1<<20 {
		return invalidf(EnvironmentFault, "environment: capacity %d: want at least a unit for each of %d jobs, at most %d", e.Capacity, len(e.Jobs), 1<<20)
	}
	slices.SortStableFunc(e.Jobs, func(a, b Job) int { return strings.Compare(a.Name, b.Name) })
	for i := range e.Jobs {
		j := &e.Jobs[i]
		if err := j.validate(); err != nil {
			return err
		}
		if i > 0 && e.Jobs[i-1].Name == j.Name {
			return trimtab.Invalidf("job %s: given twice", j.Name)
		}
		p := e.Profiles[j.Type]
		if p == nil {
			return invalidf(ProfileFault, "job %s: no profile of workload type %q", j.Name, j.Type)
		}
		if err := p.validate(j.Type); err != nil {
			return err
		}
	}
	return e.validateTrace()
}

func (e *Environment) validateTrace() error {
	if need := e.Offset + e.Rounds*Windows*WindowSeconds; len(e.Trace) < need {
		return invalidf(TraceFault, "trace: %d s, the run needs %d: %d rounds of %d s from second %d",
			len(e.Trace), need, e.Rounds, Windows*WindowSeconds, e.Offset)
	}
	for i, q := range e.Trace {
		if !(q >= 0 && q <= MostLoad) {
			return invalidf(TraceFault, "trace: second %d has %v requests: want 0 to %g", i, q, MostLoad)
		}
	}
	most := slices.Max(e.Trace)
	for i := range e.Jobs {
		if j := &e.Jobs[i]; j.Scale*most > MostLoad {
			return trimtab.Invalidf("job %s: trace_scale %v of %v requests: want at most %g", j.Name, j.Scale, most, MostLoad)
		}
	}
	return nil
}

// Load returns the load of job j, in requests/s, in window k of the run: the
// mean over its seconds of the scaled trace in whole requests (to even, as the
// published workload generator rounds), at least one request in the window.
func (e *Environment) Load(j, k int) float64 {
	scale := e.Jobs[j].Scale
	if scale == 0 {
		return 1
	}
	sum := 0.0
	for _, q := range e.Trace[e.Offset+k*WindowSeconds:][:WindowSeconds] {
		sum += math.RoundToEven(scale * q)
	}
	return max(sum, 1) / WindowSeconds
}
