package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// inFlight is how many requests of one service may be under way; what is more
// counts as failed at once.
const inFlight = 2000

// outcome is what became of one request.
type outcome struct {
	// At is when it was meant to be sent, from the start of the run.
	At time.Duration
	// Took is the time from then to its end.
	Took time.Duration
	// Failed: no answer, a wrong one, or none in time at all. Such a request
	// is late, however little time it took.
	Failed bool
	// Shed: a proxy refused it, which counts as failed, too.
	Shed bool
	// Sent: the run may end before all are.
	Sent bool
}

// observer is told of every request when it ends, from many goroutines.
type observer func(service int, from time.Time, took time.Duration, failed bool)

// generate sends the requests of all services, each at its time on a goroutine
// of its own, and returns what became of them when the last has ended.
func (h *host) generate(ctx context.Context, begin time.Time, in [3][]arrival, tell observer) [3][]outcome {
	var out [3][]outcome
	var services sync.WaitGroup
	for i, s := range h.services {
		out[i] = make([]outcome, len(in[i]))
		services.Go(func() {
			s.generate(ctx, begin, in[i], out[i], func(from time.Time, took time.Duration, failed bool) { tell(i, from, took, failed) })
		})
	}
	services.Wait()
	return out
}

func (s *service) generate(ctx context.Context, begin time.Time, in []arrival, out []outcome, tell func(from time.Time, took time.Duration, failed bool)) {
	var open atomic.Int64
	var requests sync.WaitGroup
	defer requests.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for k, a := range in {
		from := begin.Add(a.At)
		timer.Reset(time.Until(from))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		o := &out[k]
		o.At, o.Sent = a.At, true
		if open.Add(1) > inFlight {
			open.Add(-1)
			o.Failed = true
			tell(from, 0, true)
			continue
		}
		requests.Go(func() {
			defer open.Add(-1)
			ctx, cancel := context.WithDeadline(ctx, from.Add(patience))
			err := s.ask(ctx, a.Size, class(k))
			cancel()
			o.Took, o.Failed, o.Shed = time.Since(from), err != nil, errors.Is(err, errShed)
			tell(from, o.Took, o.Failed)
		})
	}
}
