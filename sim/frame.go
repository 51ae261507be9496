package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// Frame is the part that all experiments have in common: how often each of its rows is
// played, and by what. A row is one policy, load or setting; its runs differ in their seeds.
type Frame struct {
	// Seeds is how many runs each row has, the first with seed First.
	Seeds int
	First uint64
	// Runner plays the runs; nil: in order. Watch times decisions; nil: no times.
	Runner Runner
	Watch  Watch
	// Done, when not nil, is called after each run, at the same time by several where the
	// runner is parallel.
	Done func()
	// Stop, when not nil, is asked now and then in each run whether to end there; several
	// may ask at the same time.
	Stop func() bool
}

// ErrStopped is the error of a run, and of an experiment, that was told to stop.
var ErrStopped = errors.New("stopped")

// Stopped asks whether to end.
func (f *Frame) Stopped() bool { return f.Stop != nil && f.Stop() }

// Now is the time of the watch; 0 without one.
func (f *Frame) Now() time.Duration {
	if f.Watch == nil {
		return 0
	}
	return f.Watch()
}

// Each calls work with 0 to n-1, as the runner does.
func (f *Frame) Each(n int, work func(i int)) {
	if f.Runner == nil {
		InOrder(n, work)
		return
	}
	f.Runner(n, work)
}

// Play plays all runs of so many rows: run k of a row, from 0 on, has the seed First + k.
// It returns for each row whether all of its runs came to their end. The error is
// ErrStopped, or that of the first run that failed.
func (f *Frame) Play(rows int, play func(row, k int) error) (finished []bool, err error) {
	errs := make([]error, rows*f.Seeds)
	for i := range errs {
		errs[i] = ErrStopped // until it was played
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
		return finished, fmt.Errorf("run experiment: %w", ErrStopped)
	}
	if i := slices.IndexFunc(errs, failed); i >= 0 {
		return finished, errs[i]
	}
	return finished, nil
}

// UnknownError tells that there is no policy, load or other thing of a name.
type UnknownError struct {
	What, Name string
	Known      []string
}

// Error names it.
func (e *UnknownError) Error() string { return fmt.Sprintf("%s %.60q: unknown", e.What, e.Name) }

// Unwrap makes it trimtab.ErrInvalid.
func (*UnknownError) Unwrap() error { return trimtab.ErrInvalid }

// Known returns an *UnknownError for the first name that is not among the known ones.
func Known(what string, names, known []string) error {
	for _, name := range names {
		if !slices.Contains(known, name) {
			return &UnknownError{what, name, known}
		}
	}
	return nil
}
