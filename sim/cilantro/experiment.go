package cilantro

import (
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/sim"
)

// Experiment is a set of policies in one environment, each under the same
// seeds.
type Experiment struct {
	Env     *Environment
	Options Options
	// Run are the names of the policies to run; see Names.
	Run []string
	// Policies are those that run through the steps, as production has them.
	Policies []planner.Policy
	Online   Online
	// Seeds is how many runs each policy has, from the seed First on.
	Seeds int
	First uint64
	// Runner runs them; nil: in order. Watch times decisions; nil: no times.
	Runner sim.Runner
	Watch  sim.Watch
	// Done, when not nil, is called after every run, at the same time by
	// several where the runner is parallel.
	Done func()
	// Stop, when not nil, is asked in every round of a run whether to end
	// there with an error; several may ask at the same time.
	Stop func() bool
}

// Outcome is what became of one policy: a run for each seed.
type Outcome struct {
	Policy string
	Runs   []*Run
}

// maxRuns bounds an experiment.
const maxRuns = 100_000

// Play runs every policy under every seed. Errors are trimtab.ErrInvalid for
// what could not be run, an *UnknownError for a policy that there is not.
func (x *Experiment) Play() ([]Outcome, error) {
	if err := x.Env.Validate(); err != nil {
		return nil, err
	}
	if err := x.Options.Validate(x.Env); err != nil {
		return nil, err
	}
	if x.Seeds < 1 || x.Seeds*len(x.Run) > maxRuns || len(x.Run) == 0 {
		return nil, trimtab.Invalidf("experiment: %d policies, %d seeds: want at least one of each, at most %d runs", len(x.Run), x.Seeds, maxRuns)
	}
	makers := make([]maker, len(x.Run))
	out := make([]Outcome, len(x.Run))
	for i, name := range x.Run {
		m, err := x.maker(name)
		if err != nil {
			return nil, err
		}
		makers[i], out[i] = m, Outcome{Policy: name, Runs: make([]*Run, x.Seeds)}
	}
	runner := x.Runner
	if runner == nil {
		runner = sim.InOrder
	}
	// Each run writes to places of its own.
	errs := make([]error, len(x.Run)*x.Seeds)
	runner(len(errs), func(n int) {
		policy, seed := n/x.Seeds, n%x.Seeds
		out[policy].Runs[seed], errs[n] = x.play(makers[policy], x.First+uint64(seed))
		if x.Done != nil {
			x.Done()
		}
	})
	if x.Stop != nil && x.Stop() {
		return nil, fmt.Errorf("run experiment: %w", errStopped) // some runs may not have begun
	}
	for n, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("run %s, seed %d: %w", x.Run[n/x.Seeds], x.First+uint64(n%x.Seeds), err)
		}
	}
	return out, nil
}

func (x *Experiment) play(m maker, seed uint64) (*Run, error) {
	w := newWorld(x.Env, x.Options, seed)
	c, err := m(w)
	if err != nil {
		return nil, err
	}
	return run(w, c, watch{x.Watch}, x.Stop)
}
