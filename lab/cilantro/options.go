package cilantro

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// Options make the environment real; the zero value is the paper's.
type Options struct {
	// Queues lets requests that were not served wait for the next window.
	Queues bool `json:"queues"`
	// Startup is how long added units take to serve, on average: each change
	// takes half to one and a half of it. 0: none.
	Startup time.Duration `json:"startup_ns"`
	// Interference is the share of its rounds, in [0, 1], in which a
	// neighbour takes a fifth of what a job's allocation gives.
	Interference float64 `json:"interference"`
	// Drift changes performances in the middle of the run.
	Drift Drift `json:"drift"`
	// Lies multiplies what a job reports as its performance, by name.
	Lies map[string]float64 `json:"lies,omitempty"`
	// Noise is extra noise of reported performances, as a share of them. A
	// fraction is cut at 1, so one that is near 1 reports less on average.
	Noise float64 `json:"noise"`
	// Arrive and Leave say when a job is there, in rounds from the start; a
	// fraction is in mid-round.
	Arrive map[string]float64 `json:"arrive,omitempty"`
	Leave  map[string]float64 `json:"leave,omitempty"`
	// Demands are jobs that tell nothing of their performance to the policies
	// that learn, with what they say they demand, as a multiple of their
	// demand at the median load.
	Demands map[string]float64 `json:"demands,omitempty"`
}

// Drift multiplies the true performance of jobs from half of the run on.
type Drift struct {
	Jobs []string `json:"jobs,omitempty"`
	// Factor is > 0; 0.7 is a drop by 30%.
	Factor float64 `json:"factor,omitempty"`
}

// Validate returns an error that is trimtab.ErrInvalid and names the job.
func (o *Options) Validate(e *Environment) error {
	known := map[string]bool{}
	for i := range e.Jobs {
		known[e.Jobs[i].Name] = true
	}
	if o.Startup < 0 || o.Startup > time.Minute {
		return trimtab.Invalidf("start-up delay %v: want 0 to 1m", o.Startup)
	}
	if !(o.Interference >= 0 && o.Interference <= 1) || !(o.Noise >= 0 && o.Noise <= 10) {
		return trimtab.Invalidf("interference %v, noise %v: want shares, interference in [0, 1], noise in [0, 10]", o.Interference, o.Noise)
	}
	for _, of := range []struct {
		what   string
		values map[string]float64
	}{{"lie", o.Lies}, {"arrive", o.Arrive}, {"leave", o.Leave}, {"demand", o.Demands}} {
		for _, name := range slices.Sorted(maps.Keys(of.values)) {
			v := of.values[name]
			if !known[name] {
				return invalidf(JobFault, "%s %s: no such job", of.what, name)
			}
			if !(v > 0) || math.IsInf(v, 0) {
				return trimtab.Invalidf("%s %s=%v: want a finite number > 0", of.what, name, v)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Leave)) {
		arrives, leaves := o.Arrive[name], o.Leave[name]
		if leaves <= arrives || leaves >= float64(e.Rounds) {
			return invalidf(LeaveFault, "job %s arrives in round %v and leaves in round %v of %d", name, arrives, leaves, e.Rounds)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Arrive)) {
		if arrives := o.Arrive[name]; arrives >= float64(e.Rounds) {
			return trimtab.Invalidf("job %s arrives in round %v of %d", name, arrives, e.Rounds)
		}
	}
	for _, name := range o.Drift.Jobs {
		if !known[name] {
			return invalidf(JobFault, "drift %s: no such job", name)
		}
	}
	if len(o.Drift.Jobs) > 0 && !(o.Drift.Factor > 0 && o.Drift.Factor <= 10) {
		return trimtab.Invalidf("drift by %v: want a factor in (0, 10]", o.Drift.Factor)
	}
	return nil
}
