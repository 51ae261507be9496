package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// found is the offline sweep of one service: the least fixed limit that holds, and what trimtab
// knew before.
type found struct {
	// Least is the lowest limit that held, Broken the highest that did not and Why, Need what trimtab's
	// learner says that the service needs, without its margin; in bytes.
	Least, Broken, Need float64
	Why                 string
	Tried               int
}

const (
	// resolution is where the sweep stops: the part of a limit by which the one that held exceeds the
	// one that did not.
	resolution = 0.03
	// sweeps is how many limits a service is tried under at most, between these parts of its peak.
	sweeps            = 4
	lowest, uppermost = 0.7, 1.1
	// refaulting is how many pages a second a service may read again before it counts as short of
	// memory: 4 MiB/s.
	refaulting = 1024
	// missed is the share of requests in time below which a limit is too small; where the service
	// without a limit was below it already, a tenth less than that.
	missed = 0.95
)

// sweep looks for the least fixed limit under which each service holds: by halving what lies between
// a limit that held and one that did not. A limit is set on the process that runs, at a low load, and
// then the part of the day with its peak is played. What was killed is first started anew and plays
// that part without a limit: runtimes that start under a small limit take less. All services are swept
// at the same time.
func (b *bench) sweep(ctx context.Context, r *result) error {
	r.Sweep = make([]found, len(b.services))
	failed := make([]error, len(b.services))
	var sweeps sync.WaitGroup
	for i, s := range b.services {
		sweeps.Go(func() {
			r.Sweep[i], failed[i] = b.sweepOne(ctx, s, i, r)
			failed[i] = errors.Join(failed[i], s.Set(0))
		})
	}
	sweeps.Wait()
	for i, err := range failed {
		if err != nil {
			return fmt.Errorf("sweep %s: %w", b.services[i].name, err)
		}
	}
	return nil
}

func (b *bench) sweepOne(ctx context.Context, s *service, stream int, r *result) (f found, err error) {
	days := r.Days[s.name]
	f.Need = need(days)
	f.Broken, f.Least = lowest*peak(days), uppermost*peak(days)
	enough := min(missed, 0.9*r.Rows[0].Services[stream].InTime)
	for limit := (f.Broken + f.Least) / 2; f.Tried < sweeps && f.Least > f.Broken*(1+resolution); limit = (f.Broken + f.Least) / 2 {
		why, err := b.try(ctx, s, stream, limit, enough)
		if err != nil {
			return f, err
		}
		if f.Tried++; why == "" {
			f.Least = limit
		} else {
			f.Broken, f.Why = limit, why
		}
		b.say("sweep %s: %.0f MiB %s", s.name, limit/mib, map[bool]string{true: "holds", false: "does not: " + why}[why == ""])
	}
	return f, nil
}

// try plays the part of the day with its peak under a limit, and says why it is too small; "": it is
// not. It leaves the service without a limit, and as it is after that part without one.
func (b *bench) try(ctx context.Context, s *service, stream int, limit, enough float64) (why string, err error) {
	if err := s.Set(limit); err != nil {
		// It does not wait for a limit that would kill at once.
		return "more is in use", s.Set(0)
	}
	c := worst(b.Day)
	out, err := b.playOne(ctx, s, stream, c, b.Seed, nil)
	if err != nil {
		return "", err
	}
	if err := s.Set(0); err != nil {
		return "", err
	}
	switch f := score(out, b.Within); {
	case f.Kills > 0:
		// Its caches are cold now.
		if err := s.again(ctx, 0); err != nil {
			return "", err
		}
		if err := s.warm(ctx); err != nil {
			return "", err
		}
		_, err := b.playOne(ctx, s, stream, c, b.Seed, nil)
		return fmt.Sprintf("%.0f kills", f.Kills), err
	case f.InTime < enough:
		return fmt.Sprintf("%.1f%% in time", 100*f.InTime), nil
	case f.Refaults > refaulting*c.Length.Seconds():
		return fmt.Sprintf("%.0f pages/s read again", f.Refaults/c.Length.Seconds()), nil
	}
	return "", nil
}

// need is what trimtab's learner says after the days.
func need(days [][]reading) float64 {
	end := time.Unix(1e9, 0)
	n, _ := learnt(days, end).Need(end)
	return n.Limit
}
