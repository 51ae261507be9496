package main

import (
	"context"
	"fmt"
	"math"
	"time"
)

// calibrate finds, for each service, the work that costs about target of CPU
// time, and measures what it does cost. The quota must be off.
func (h *host) calibrate(ctx context.Context, target time.Duration) error {
	for _, s := range h.services {
		s.Work = 100
		for range 4 {
			cost, err := s.measure(ctx, 40)
			if err != nil {
				return err
			}
			s.Work = max(1, int(math.Round(float64(s.Work)*float64(target)/float64(cost))))
		}
		var err error
		if s.Cost, err = s.measure(ctx, 150); err != nil {
			return err
		}
	}
	return nil
}

// measure returns the mean CPU time of a request, over n after a few that warm
// caches.
func (s *service) measure(ctx context.Context, n int) (time.Duration, error) {
	var before time.Duration
	const warm = 5
	for k := range n + warm {
		if k == warm {
			var err error
			if before, err = s.group.used(); err != nil {
				return 0, err
			}
		}
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
	return max(after-before, time.Microsecond) / time.Duration(n), nil
}
