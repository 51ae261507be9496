package main

import (
	"context"
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
	// sweeps is how many limits a service is tried under at most.
	sweeps = 5
	// refaulting is how many pages a second a service may read again before it counts as short of
	// memory: 4 MiB/s.
	refaulting = 1024
	// missed is the share of requests in time below which a limit is too small; where the service
	// without a limit was below it already, a tenth less than that.
	missed = 0.95
)

// sweep looks for the least fixed limit under which each service holds: by halving what lies between
// a limit that held and one that did not. Each try starts the service anew under the limit, lets it
// fill, and plays the part of the day with its peak. All services are swept at the same time.
func (b *bench) sweep(ctx context.Context, r *result) error {
	r.Sweep = make([]found, len(b.services))
	failed := make([]error, len(b.services))
	var sweeps sync.WaitGroup
	for i, s := range b.services {
		sweeps.Go(func() {
			r.Sweep[i], failed[i] = b.sweepOne(ctx, s, i, r)
			if failed[i] == nil {
				failed[i] = s.again(ctx, 0)
			}
			if failed[i] == nil {
				failed[i] = s.warm(ctx)
			}
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
	f.Broken, f.Least = 0.5*peak(days), 1.1*peak(days)
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

// try plays the part of the day with its peak under a limit, and says why it is too small; "": it is not.
func (b *bench) try(ctx context.Context, s *service, stream int, limit, enough float64) (why string, err error) {
	const within = 20 * time.Second
	starting, stop := context.WithTimeout(ctx, within)
	defer stop()
	before, err := s.Use()
	if err != nil {
		return "", err
	}
	// What runs under the limit is started again if it is killed; what does not even start was too tight.
	if err := s.again(starting, limit); err != nil {
		return "it does not start", ctx.Err()
	}
	if err := s.warm(starting); err != nil {
		return "it does not fill", ctx.Err()
	}
	c := worst(b.Day)
	out, err := b.playOne(ctx, s, stream, c, b.Seed, nil)
	if err != nil {
		return "", err
	}
	f := score(out, b.Within)
	after, err := s.Use()
	switch {
	case err != nil:
		return "", err
	case after.Kills > before.Kills:
		return fmt.Sprintf("%.0f kills", after.Kills-before.Kills), nil
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
