package cilantro

import (
	"fmt"

	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/sim"
)

// Controller answers the rounds of one run.
type Controller interface {
	// Decide returns the units of each job for round r, from what was told
	// before. The sum is at most the capacity.
	Decide(r int) ([]int, error)
	// Tell hands over what the jobs report of window k.
	Tell(k int, reports []Report)
}

// Run is what became of one policy under one seed.
type Run struct {
	// All is the mean over the run, Late over its last third (60 of 180
	// rounds); Rounds has each round.
	All, Late Score
	Rounds    []Score
	// Moved is the units moved in each round, Σ|change|/2.
	Moved []float64
	// Utility is each job's mean over the windows in which it was there; NaN
	// when it never was.
	Utility []float64
	// Allocation is each job's mean, in units; NaN likewise.
	Allocation []float64
	// Coverage is, per job, the share of the true curve within the band at
	// the end of the run; NaN where no curve came of the job's reports, nil
	// for a policy that learns no curve.
	Coverage []float64
	// Decide and Learn are the milliseconds of each round: one decision, and
	// the reports of one round; empty without a watch.
	Decide, Learn []float64
}

// watch reads milliseconds; all 0 without one.
type watch struct{ watch lab.Watch }

func (w watch) now() float64 {
	if w.watch == nil {
		return 0
	}
	return float64(w.watch()) / 1e6
}

// covered is a controller that learns curves.
type covered interface {
	// Coverage returns the share of the true curve of each job within its
	// band; NaN for a job without one.
	Coverage(w *world) []float64
}

// run plays one controller through the environment, until stop returns true;
// nil never does.
func run(w *world, c Controller, watch watch, stop func() bool) (*Run, error) {
	e := w.env
	out := &Run{Utility: make([]float64, len(w.jobs)), Allocation: make([]float64, len(w.jobs))}
	truths, reports := make([]truth, len(w.jobs)), make([]Report, len(w.jobs))
	there := make([]float64, len(w.jobs))
	var before []int
	for r := range e.Rounds {
		if stop != nil && stop() {
			return nil, sim.ErrStopped
		}
		start := watch.now()
		units, err := c.Decide(r)
		if err != nil {
			return nil, fmt.Errorf("round %d: %w", r, err)
		}
		decided := watch.now()
		w.begin(r, units)
		out.Moved = append(out.Moved, moved(before, units))
		before = append(before[:0], units...)
		var windows []Score
		learn := 0.0
		for k := r * Windows; k < (r+1)*Windows; k++ {
			w.window(k, truths, reports)
			windows = append(windows, score(truths, float64(e.Capacity)))
			for i := range truths {
				if !truths[i].absent {
					out.Utility[i] += truths[i].utility
					out.Allocation[i] += truths[i].allocation
					there[i]++
				}
			}
			told := watch.now()
			c.Tell(k, reports)
			learn += watch.now() - told
		}
		out.Rounds = append(out.Rounds, mean(windows))
		if watch.watch != nil {
			out.Decide, out.Learn = append(out.Decide, decided-start), append(out.Learn, learn)
		}
	}
	for i := range there {
		out.Utility[i] /= there[i]
		out.Allocation[i] /= there[i]
	}
	out.All, out.Late = mean(out.Rounds), mean(out.Rounds[e.Rounds*2/3:])
	if l, ok := c.(covered); ok {
		out.Coverage = l.Coverage(w)
	}
	return out, nil
}

// moved returns Σ|change|/2; 0 for the first allocation.
func moved(before, now []int) float64 {
	sum := 0
	for i := range before {
		sum += max(before[i]-now[i], now[i]-before[i])
	}
	return float64(sum) / 2
}
