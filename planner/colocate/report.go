package colocate

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
)

// The kinds of values that reach a [Step] only inside the agent's process, never over the bus.
const (
	KindProgress     trimtab.Kind = "progress"
	KindSurroundings trimtab.Kind = "surroundings"
)

// The kinds of prediction.
const (
	PredictDataParallel = "data-parallel"
	PredictTraining     = "training"
)

// Progress is a job's progress. Durations count only the time that it runs. A nil number is
// unknown.
type Progress struct {
	// Job is the job's ID: see [JobID].
	Job  string
	Time time.Time
	// Predict says how to predict its makespan: PredictDataParallel from Done, PredictTraining from
	// Remaining and Rate, "": not at all.
	Predict string
	// Done is the fraction that is done. Remaining is the number of remaining steps, at Rate steps
	// a second.
	Done, Remaining, Rate *float64
	// Elapsed is how long it has run; SinceCheckpoint is how much of that would be lost.
	Elapsed, SinceCheckpoint *time.Duration
	// Replica says that another copy of it runs, so that nothing is lost with this one.
	Replica bool
	// Finished says that it needs no more resources.
	Finished bool
}

// Kind returns KindProgress.
func (p *Progress) Kind() trimtab.Kind { return KindProgress }

// Key returns the job.
func (p *Progress) Key() string { return p.Job }

// Validate checks the name and the time. Invalid numbers make a job unpredictable, and are no
// error.
func (p *Progress) Validate() error {
	if p.Job == "" || len(p.Job) > 2*253+1 {
		return trimtab.Invalidf("progress of job %.40q: want a name of at most 507 bytes", p.Job)
	}
	if p.Time.IsZero() {
		return trimtab.Invalidf("progress of %.60s: no time", p.Job)
	}
	return nil
}

// Surroundings has the other measurements of the host. A value that is nil or left out was not
// measured.
type Surroundings struct {
	Time time.Time
	// Capacity is the capacity for all best-effort jobs: that of the host, less what its other
	// workloads have or use.
	Capacity Amounts
	Power    *Power
	Link     *Link
	// Frequencies has the present clock of each service's cores and the least that they should
	// have, in MHz.
	Frequencies map[string]Frequency
	// Idle has the services that used next to no CPU time and waited for nothing, as the kernel
	// counts.
	Idle map[string]bool
}

// Frequency is the present clock of cores and the least that they should run at, in MHz.
type Frequency struct{ Now, Least float64 }

// Kind returns KindSurroundings.
func (s *Surroundings) Kind() trimtab.Kind { return KindSurroundings }

// Key returns "".
func (s *Surroundings) Key() string { return "" }

// Validate checks the time. Invalid numbers count as missing, and are no error.
func (s *Surroundings) Validate() error {
	if s.Time.IsZero() {
		return trimtab.Invalidf("surroundings: no time")
	}
	return nil
}

// JobID returns the ID of a job from its workload and instance.
func JobID(workload, instance string) string {
	if instance == "" {
		return workload
	}
	return workload + "/" + instance
}

// measuredWork is the step's own measurement of a job's work.
type measuredWork struct {
	// Attained is the CPU time that it was given, in core-seconds; Ran is how many seconds it ran;
	// both as far as observed.
	Attained float64 `json:"attained"`
	Ran      float64 `json:"ran_s"`
	// Back says that it reported less progress than before: it is not predicted again.
	Back bool `json:"back,omitempty"`

	last *Progress
	// silent is how long it has run since its last report.
	silent time.Duration
	seen   bool
}

// take stores a report if it is the newest.
func (c *measuredWork) take(p *Progress) {
	if l := c.last; l != nil {
		if !p.Time.After(l.Time) {
			return
		}
		c.Back = c.Back || falls(l.Done, p.Done) || falls(p.Remaining, l.Remaining)
	}
	c.last, c.silent = p, 0
}

// falls reports whether a number that must not decrease did.
func falls(before, after *float64) bool {
	b, a := known(before), known(after)
	return !math.IsNaN(b) && !math.IsNaN(a) && a < b
}

// run records that the job ran for a while with the given number of cores.
func (c *measuredWork) run(d time.Duration, cores float64) {
	c.silent += d
	c.Ran += d.Seconds()
	c.Attained += d.Seconds() * cores
}

// seconds returns a reported duration in seconds, or otherwise if none was reported.
func seconds(d *time.Duration, otherwise float64) float64 {
	if d == nil || *d < 0 {
		return otherwise
	}
	return d.Seconds()
}
