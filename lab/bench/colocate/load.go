package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// patience is how long a client waits for an answer, from when it meant to ask.
	patience = 5 * time.Second
	// inFlight is how many requests may be under way; what is more fails at once.
	inFlight = 2000
)

// outcome is what became of one request.
type outcome struct {
	// At is when it was meant to be sent, from the start of the load; Lag how much
	// later it was.
	At, Lag time.Duration
	// Took is the time from At to its end. Back is the part of it, from BackAt
	// after the start of the load on, in which it waited for Redis.
	Took, BackAt, Back time.Duration
	// Failed: no answer, or a wrong one. Sent: the load may end before all are.
	Failed, Sent bool
}

// answer is when Redis was asked and had answered.
type answer struct{ Asked, Answered time.Time }

// service is what requests are sent to.
type service interface {
	do(ctx context.Context) (answer, error)
}

// generate sends each request at its time on a goroutine of its own, whatever became
// of those before, tells of each when it has ended, and returns when all have.
func generate(ctx context.Context, s service, begin time.Time, at []time.Duration, tell func(begin time.Time, o *outcome)) []outcome {
	out := make([]outcome, len(at))
	var open atomic.Int64
	var requests sync.WaitGroup
	defer requests.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for k, due := range at {
		from := begin.Add(due)
		timer.Reset(time.Until(from))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return out
		}
		o := &out[k]
		o.At, o.Sent = due, true
		if open.Add(1) > inFlight {
			open.Add(-1)
			o.Failed, o.Took = true, patience
			tell(begin, o)
			continue
		}
		requests.Go(func() {
			defer open.Add(-1)
			ctx, cancel := context.WithDeadline(ctx, from.Add(patience))
			defer cancel()
			o.Lag = time.Since(from)
			a, err := s.do(ctx)
			o.Took, o.Failed = time.Since(from), err != nil
			if err == nil {
				o.BackAt, o.Back = a.Asked.Sub(begin), a.Answered.Sub(a.Asked)
			}
			tell(begin, o)
		})
	}
	return out
}
