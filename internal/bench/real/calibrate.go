package main

import (
	"context"
	"fmt"
	"math"
	"slices"
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
		s.Work = 50
	}
	// The first guesses are far off, and need few rounds.
	for _, n := range []int{3, 3, rounds, rounds} {
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
			work := s.Work
			s.Cost = all[i][n/2]
			s.Work = max(1, int(math.Round(float64(work)*float64(target)/float64(s.Cost))))
			// What a request costs is in proportion to its work.
			s.Cost = time.Duration(float64(s.Cost) * float64(s.Work) / float64(work))
		}
	}
	return nil
}

// batch returns the mean CPU time of a request of size 1, over one batch.
func (s *service) batch(ctx context.Context) (time.Duration, error) {
	before, err := s.group.used()
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
	after, err := s.group.used()
	if err != nil {
		return 0, err
	}
	return max(after-before, time.Microsecond) / batchSize, nil
}
