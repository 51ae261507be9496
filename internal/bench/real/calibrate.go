package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// batchSize is how many requests a cost is the mean of. Other work on the
// machine makes some batches dearer, so the median of several batches counts.
const batchSize = 20

// calibrate finds, for each service, the work that costs about target of CPU
// time, and measures what it does cost: in turn, so that a busy moment of the
// machine is not one service's alone. The quotas must be off.
func (h *host) calibrate(ctx context.Context, target time.Duration) error {
	for _, s := range h.services {
		s.Work = 50
		for range 4 {
			cost, err := median(3, func() (time.Duration, error) { return s.batch(ctx) })
			if err != nil {
				return err
			}
			if off := float64(cost) / float64(target); off > 0.95 && off < 1.05 {
				break
			}
			s.Work = max(1, int(math.Round(float64(s.Work)*float64(target)/float64(cost))))
		}
	}
	var all [3][]time.Duration
	for range 7 {
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
		s.Cost = all[i][len(all[i])/2]
	}
	return nil
}

// median returns the middle of n values; n is odd.
func median(n int, value func() (time.Duration, error)) (time.Duration, error) {
	all := make([]time.Duration, n)
	for k := range all {
		var err error
		if all[k], err = value(); err != nil {
			return 0, err
		}
	}
	slices.Sort(all)
	return all[n/2], nil
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
