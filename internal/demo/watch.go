package demo

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"
)

// watchEvery is how often the knobs are read back.
const watchEvery = 50 * time.Millisecond

// watch reads the knobs back for as long as the demo runs.
type watch struct {
	place    place
	services []*Service

	mu      sync.Mutex
	now     []float64
	sums    []float64 // of the readings since mark
	n       int
	highest float64
}

// snapshot reads all knobs at one moment: it reads them twice, and again until both readings
// agree, since a grow that is read after a shrink was would give a sum that never existed. ok is
// false if the knobs kept changing.
func (w *watch) snapshot(ctx context.Context) (values []float64, ok bool, err error) {
	last, err := w.read(ctx)
	if err != nil {
		return nil, false, err
	}
	for range 5 {
		again, err := w.read(ctx)
		if err != nil {
			return nil, false, err
		}
		if slices.Equal(last, again) {
			return again, true, nil
		}
		last = again
	}
	return last, false, nil
}

func (w *watch) read(ctx context.Context) ([]float64, error) {
	values := make([]float64, len(w.services))
	for i, s := range w.services {
		v, err := w.place.Has(ctx, s)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

// once adds one snapshot.
func (w *watch) once(ctx context.Context) error {
	values, ok, err := w.snapshot(ctx)
	if err != nil || !ok {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sums == nil {
		w.sums = make([]float64, len(values))
	}
	sum := 0.0
	for i, v := range values {
		w.sums[i] += v
		sum += v
	}
	w.now = values
	w.n++
	w.highest = max(w.highest, sum)
	return nil
}

// run watches until ctx ends; failed gets a read that did not work.
func (w *watch) run(ctx context.Context, failed func(error)) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := w.once(ctx); err != nil && !errors.Is(err, context.Canceled) {
			failed(err)
			return
		}
	}
}

// mark starts a new mean.
func (w *watch) mark() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n, w.sums = 0, nil
}

// means returns the mean allocations since mark.
func (w *watch) means() []float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]float64, len(w.services))
	for i := range w.sums {
		out[i] = w.sums[i] / float64(max(1, w.n))
	}
	return out
}

// current returns the latest readings; nil before the first.
func (w *watch) current() []float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// highestSum returns the highest sum that was ever read, without the last
// digits that adding leaves: knobs have nothing smaller than a millionth.
func (w *watch) highestSum() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return round9(w.highest)
}

func round9(v float64) float64 { return math.Round(v*1e9) / 1e9 }
