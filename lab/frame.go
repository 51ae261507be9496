package lab

import (
	"fmt"
	"slices"
	"time"

	"github.com/trimtab/trimtab/sim"
)

// Watch returns the time since some fixed moment. It never decreases.
type Watch func() time.Duration

// Frame has the common settings of all experiments. A row of an experiment is one policy, load or
// setting; its runs differ in their seeds.
type Frame struct {
	// Seeds is the number of runs of each row. The first has the seed First, the next First + 1,
	// and so on.
	Seeds int
	First uint64
	// Runner plays the runs; nil: one after the other. Watch measures the time of decisions; nil:
	// times are 0.
	Runner sim.Runner
	Watch  Watch
	// Done, if not nil, is called after each run, possibly concurrently.
	Done func()
	// Stop, if not nil, is called now and then in each run, possibly concurrently; true ends the
	// run.
	Stop func() bool
}

// Stopped reports whether to end.
func (f *Frame) Stopped() bool { return f.Stop != nil && f.Stop() }

// Now returns the time of the watch; 0 without one.
func (f *Frame) Now() time.Duration {
	if f.Watch == nil {
		return 0
	}
	return f.Watch()
}

// Each calls work with 0 to n-1 through the runner.
func (f *Frame) Each(n int, work func(i int)) {
	if f.Runner == nil {
		sim.InOrder(n, work)
		return
	}
	f.Runner(n, work)
}

// Play plays all runs of so many rows: run k of a row, from 0 on, has the seed First + k. It
// returns for each row whether all of its runs finished. The error is ErrStopped, or that of the
// first run that failed.
func (f *Frame) Play(rows int, play func(row, k int) error) (finished []bool, err error) {
	errs := make([]error, rows*f.Seeds)
	for i := range errs {
		errs[i] = sim.ErrStopped // unless it is played
	}
	f.Each(len(errs), func(i int) {
		errs[i] = play(i/f.Seeds, i%f.Seeds)
		if f.Done != nil {
			f.Done()
		}
	})
	failed := func(err error) bool { return err != nil }
	for row := range slices.Chunk(errs, max(1, f.Seeds)) {
		finished = append(finished, !slices.ContainsFunc(row, failed))
	}
	if f.Stopped() {
		return finished, fmt.Errorf("run experiment: %w", sim.ErrStopped)
	}
	if i := slices.IndexFunc(errs, failed); i >= 0 {
		return finished, errs[i]
	}
	return finished, nil
}
