package cilantro

import (
	"errors"
	"fmt"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/sim"
)

// Experiment is a set of policies in one environment, each under the same
// seeds.
type Experiment struct {
	lab.Frame
	Env     *Environment
	Options Options
	// Run are the names of the policies to run; see Names.
	Run []string
	// Policies are those that run through the steps, as production has them.
	Policies []policy.Policy
	Online   Online
	// Both plays each of Policies a second time, as Online with the guard.
	Both bool
}

// Outcome is what became of one policy: a run for each seed.
type Outcome struct {
	Policy string
	Runs   []*Run
	// Guarded are the same with the guard; nil for a policy that has none, or
	// where the experiment is not to play both.
	Guarded []*Run
}

// maxRuns bounds an experiment.
const maxRuns = 100_000

// Play runs every policy under every seed. One that was stopped returns the
// policies of which every run was finished, beside the error. Errors are trimtab.ErrInvalid for
// what could not be run, a *sim.UnknownError for a policy that there is not.
func (x *Experiment) Play() ([]Outcome, error) {
	if err := x.Env.Validate(); err != nil {
		return nil, err
	}
	if err := x.Options.Validate(x.Env); err != nil {
		return nil, err
	}
	if x.Seeds < 1 || len(x.Run) == 0 || x.Runs() > maxRuns {
		return nil, trimtab.Invalidf("experiment: %d policies, %d seeds: want at least one of each, at most %d runs", len(x.Run), x.Seeds, maxRuns)
	}
	out := make([]Outcome, len(x.Run))
	var series []series
	for i, name := range x.Run {
		of, err := x.series(name)
		if err != nil {
			return nil, err
		}
		out[i] = Outcome{Policy: name, Runs: of[0].runs}
		if len(of) > 1 {
			out[i].Guarded = of[1].runs
		}
		series = append(series, of...)
	}
	_, err := x.Frame.Play(len(series), func(i, k int) (err error) {
		s, seed := &series[i], x.First+uint64(k)
		if s.runs[k], err = x.play(s.make, seed); err != nil {
			return fmt.Errorf("run %s, seed %d: %w", s.policy, seed, err)
		}
		return nil
	})
	if err != nil && !errors.Is(err, sim.ErrStopped) {
		return nil, err
	}
	return finished(out), err
}

// finished are the policies all of whose runs were played to the end.
func finished(all []Outcome) (out []Outcome) {
	for _, o := range all {
		if !slices.Contains(o.Runs, nil) && !slices.Contains(o.Guarded, nil) {
			out = append(out, o)
		}
	}
	return out
}

// Runs is how many runs the experiment has.
func (x *Experiment) Runs() int {
	runs := x.Seeds * len(x.Run)
	for _, name := range x.Run {
		if x.Both && x.learns(name) != nil {
			runs += x.Seeds
		}
	}
	return runs
}

// series are the runs of one policy, with the guard or without.
type series struct {
	policy string
	make   maker
	runs   []*Run // one for each seed
}

// series returns the runs of a policy, those with the guard after the others.
func (x *Experiment) series(name string) ([]series, error) {
	m, err := x.maker(name)
	if err != nil {
		return nil, err
	}
	of := []series{{name, m, make([]*Run, x.Seeds)}}
	if p := x.learns(name); p != nil && x.Both {
		guarded := x.Online
		guarded.Guard = true
		of = append(of, series{name + " with the guard", online(guarded, p), make([]*Run, x.Seeds)})
	}
	return of, nil
}

func (x *Experiment) play(m maker, seed uint64) (*Run, error) {
	w := newWorld(x.Env, x.Options, seed)
	c, err := m(w)
	if err != nil {
		return nil, err
	}
	return run(w, c, watch{x.Watch}, x.Stop)
}
