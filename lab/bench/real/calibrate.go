package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"sync"
	"time"
)

// Other work on the machine makes some requests dearer, for a while: a cost is
// the median of many small batches, which are taken of each service in turn.
const (
	batchSize = 10
	rounds    = 15
)

// calibrate finds, for each service, the work that costs about target of CPU
// time, and measures what it does cost. The quotas must be off.
func (h *host) calibrate(ctx context.Context, target time.Duration) error {
	for _, s := range h.services {
		s.Cost = target
		s.price.begin(50, target, 0)
	}
	// The first guesses are far off, and need few rounds.
	for _, n := range []int{3, 3, rounds, rounds} {
		if err := h.tune(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// warmUp is how much of its load a row is preceded by.
const warmUp = 10 * time.Second

// again finds the work of a request anew, before a row, under the beginning of its
// load: a request is dearer while others run beside it. It takes the quotas off.
func (h *host) again(ctx context.Context, in [3][]arrival) error {
	for _, s := range h.services {
		if err := s.free(ctx); err != nil {
			return err
		}
	}
	for i := range in {
		n := sort.Search(len(in[i]), func(k int) bool { return in[i][k].At > warmUp })
		in[i] = in[i][:n]
	}
	used, err := h.usage()
	if err != nil {
		return err
	}
	for i, s := range h.services {
		s.price.begin(s.price.now(), s.Cost, used[i])
	}
	holding, stop := context.WithCancel(ctx)
	defer stop()
	var failed error
	var holds sync.WaitGroup
	holds.Go(func() { failed = h.hold(holding, 0) })
	h.generate(ctx, time.Now(), in, func(int, time.Time, time.Duration, bool) {})
	stop()
	holds.Wait()
	return failed
}

// tune sets the work of a request of each service to what costs its Cost, by n
// batches of each.
func (h *host) tune(ctx context.Context, n int) error {
	var all [3][]time.Duration
	for range n {
		for i, s := range h.services {
			cost, err := s.batch(ctx)
			if err != nil {
				return err
			}
			all[i] = append(all[i], cost)
		}
	}
	for i, s := range h.services {
		slices.Sort(all[i])
		// What a request costs is in proportion to its work.
		work := max(1, int(math.Round(float64(s.price.now())*float64(s.Cost)/float64(all[i][n/2]))))
		used, err := s.used()
		if err != nil {
			return err
		}
		s.price.begin(work, s.Cost, used)
	}
	return nil
}

// batch returns the mean CPU time of a request of size 1, over one batch.
func (s *service) batch(ctx context.Context) (time.Duration, error) {
	before, err := s.used()
	if err != nil {
		return 0, err
	}
	for range batchSize {
		ctx, cancel := context.WithTimeout(ctx, patience)
		err := s.do(ctx, 1)
		cancel()
		if err != nil {
			return 0, fmt.Errorf("calibrate %s: %w", s.Name, err)
		}
	}
	after, err := s.used()
	if err != nil {
		return 0, err
	}
	return max(after-before, time.Microsecond) / batchSize, nil
}
