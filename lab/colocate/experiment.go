package colocate

import (
	"errors"
	"fmt"
	"slices"

	"github.com/trimtab/trimtab"
	control "github.com/trimtab/trimtab/planner/colocate"
	"github.com/trimtab/trimtab/sim"
)

// PolicyNames are the policies that can be played.
func PolicyNames() []string {
	return []string{control.None, control.Heracles, control.Deflation, control.Indiscriminate, control.Rhythm, Oracle}
}

// Experiment plays policies side by side, each with the same seeds.
type Experiment struct {
	Env *Environment
	Run []string
	// Periods of each run, Seeds runs of each policy, the first with seed First.
	Periods, Seeds int
	First          uint64
	Limits         Limits
	// Scale multiplies all slacklimits that were found; 0: 1.
	Scale float64
	// Course keeps the course of the first run of each policy.
	Course bool
	// Runner is required; Done is called after each run.
	Runner sim.Runner
	Done   func()
	// Stop, when not nil, is asked in every period whether to end.
	Stop func() bool
}

// UnknownError tells that there is no such policy.
type UnknownError struct {
	Policy string
	Known  []string
}

// Error names the policy.
func (e *UnknownError) Error() string { return fmt.Sprintf("policy %.60q: unknown", e.Policy) }

// Unwrap makes it trimtab.ErrInvalid.
func (*UnknownError) Unwrap() error { return trimtab.ErrInvalid }

// errStopped ends a run that was told to stop.
var errStopped = errors.New("stopped")

// Outcome is what came of one policy.
type Outcome struct {
	Policy string
	// Runs have the figures of each run, Courses the first run's course, by service.
	Runs    []Figures
	Courses []Course
}

// The bounds of an experiment.
const maxPeriods, maxSeeds = 1_000_000, 10_000

// Validate returns an error that is trimtab.ErrInvalid.
func (x *Experiment) Validate() error {
	if x.Periods < 1 || x.Periods > maxPeriods || x.Seeds < 1 || x.Seeds > maxSeeds {
		return trimtab.Invalidf("simulation: %d periods of %d seeds: want 1 to %d and 1 to %d", x.Periods, x.Seeds, maxPeriods, maxSeeds)
	}
	for _, name := range x.Run {
		if !slices.Contains(PolicyNames(), name) {
			return &UnknownError{name, PolicyNames()}
		}
	}
	return x.Env.Validate()
}

// Play runs all of it. The profiles are those of the solo runs, with the limits.
func (x *Experiment) Play() ([]Profile, []Outcome, error) {
	if err := x.Validate(); err != nil {
		return nil, nil, err
	}
	known, err := x.profiles()
	if err != nil {
		return nil, nil, err
	}
	x.scale(known)
	out := make([]Outcome, len(x.Run))
	for i, name := range x.Run {
		out[i] = Outcome{Policy: name, Runs: make([]Figures, x.Seeds)}
	}
	errs, done := make([]error, len(out)*x.Seeds), make([]bool, len(out)*x.Seeds)
	x.Runner(len(errs), func(i int) {
		o, run := &out[i/x.Seeds], i%x.Seeds
		o.Runs[run], errs[i] = x.play(o, known, run)
		done[i] = errs[i] == nil
		if x.Done != nil {
			x.Done()
		}
	})
	if x.Stop != nil && x.Stop() {
		var finished []Outcome
		for i := range out {
			if !slices.Contains(done[i*x.Seeds:(i+1)*x.Seeds], false) {
				finished = append(finished, out[i])
			}
		}
		return known, finished, fmt.Errorf("run experiment: %w", errStopped)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	return known, out, nil
}

func (x *Experiment) scale(known []Profile) {
	if x.Scale == 0 {
		return
	}
	for i := range known {
		for j := range known[i].Pods {
			if p := &known[i].Pods[j]; p.SlackLimit != nil {
				v := *p.SlackLimit * x.Scale
				p.SlackLimit = &v
			}
		}
	}
}

// equip gives each host its own policy.
func (x *Experiment) equip(w *world, name string) error {
	for _, h := range w.hosts {
		p, err := control.New(name, control.Config{Period: period, Host: h.Name})
		if err != nil {
			return fmt.Errorf("make policy of host %s: %w", h.Name, err)
		}
		h.policy = p
	}
	return nil
}

// play is one run.
func (x *Experiment) play(o *Outcome, known []Profile, run int) (Figures, error) {
	w := newWorld(x.Env, known, x.First+uint64(run))
	if o.Policy == Oracle {
		w.oracle = newOracle(w, known)
	} else if err := x.equip(w, o.Policy); err != nil {
		return Figures{}, err
	}
	var courses []Course
	if x.Course && run == 0 {
		courses = newCourses(w)
	}
	for p := range x.Periods {
		if x.Stop != nil && x.Stop() {
			return Figures{}, errStopped
		}
		w.play(x.Env.Load.at(p, x.Periods))
		for i := range courses {
			courses[i].note(w, i, p)
		}
		if w.oracle == nil {
			w.decide()
		}
	}
	if courses != nil {
		o.Courses = courses
	}
	return w.figures(x.Periods), nil
}
