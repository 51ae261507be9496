package colocate

import (
	"errors"
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/lab"
	control "github.com/trimtab/trimtab/planner/colocate"
	"github.com/trimtab/trimtab/sim"
)

// PolicyNames are the policies that can be played.
func PolicyNames() []string {
	return []string{control.None, control.Heracles, control.Deflation, control.Indiscriminate, control.Rhythm, Oracle}
}

// Experiment plays policies side by side, each with the same seeds.
type Experiment struct {
	lab.Frame
	Env *Environment
	Run []string
	// Periods of each run.
	Periods int
	Limits  Limits
	// Scale multiplies all slacklimits that were found; 0: 1.
	Scale float64
	// Course keeps the course of the first run of each policy.
	Course bool
}

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
	if err := sim.Known("policy", x.Run, PolicyNames()); err != nil {
		return err
	}
	return x.Env.Validate()
}

// Runs is how many runs the experiment has.
func (x *Experiment) Runs() int { return len(x.Run) * x.Seeds }

// Play runs all of it. The profiles are those of the solo runs, with the limits. One that was
// stopped returns the policies of which every run was finished, beside the error.
func (x *Experiment) Play() ([]Profile, []Outcome, error) {
	if err := x.Validate(); err != nil {
		return nil, nil, err
	}
	known, err := x.profiles()
	if err != nil {
		return nil, nil, err
	}
	x.scale(known)
	all := make([]Outcome, len(x.Run))
	for i, name := range x.Run {
		all[i] = Outcome{Policy: name, Runs: make([]Figures, x.Seeds)}
	}
	finished, err := x.Frame.Play(len(all), func(i, run int) (err error) {
		all[i].Runs[run], err = x.play(&all[i], known, run)
		return err
	})
	if err != nil && !errors.Is(err, sim.ErrStopped) {
		return nil, nil, err
	}
	var out []Outcome
	for i := range all {
		if finished[i] {
			out = append(out, all[i])
		}
	}
	return known, out, err
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
		if x.Stopped() {
			return Figures{}, sim.ErrStopped
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
