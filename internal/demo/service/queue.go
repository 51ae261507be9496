package service

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Why a request got no slot.
var (
	errFull = errors.New("queue is full")
	errLate = errors.New("waited too long")
)

// queue hands out slots in order of arrival.
type queue struct {
	slots   chan struct{}
	waiting atomic.Int64
	limit   int64
}

func newQueue(slots, limit int) *queue {
	return &queue{slots: make(chan struct{}, slots), limit: int64(limit)}
}

// enter waits for a slot until deadline or the end of ctx. The caller of a
// successful enter must call leave.
func (q *queue) enter(ctx context.Context, deadline time.Time) error {
	if !time.Now().Before(deadline) {
		return errLate
	}
	select {
	case q.slots <- struct{}{}:
		return nil
	default:
	}
	defer q.waiting.Add(-1)
	if q.waiting.Add(1) > q.limit {
		return errFull
	}
	late := time.NewTimer(time.Until(deadline))
	defer late.Stop()
	select {
	case q.slots <- struct{}{}:
		return q.check(ctx, deadline)
	case <-late.C:
		return errLate
	case <-ctx.Done():
		return ctx.Err()
	}
}

// check returns a slot that came too late: a process that was stopped may find slot, timer and
// hang-up all at once.
func (q *queue) check(ctx context.Context, deadline time.Time) error {
	switch {
	case ctx.Err() != nil:
		q.leave()
		return ctx.Err()
	case !time.Now().Before(deadline):
		q.leave()
		return errLate
	}
	return nil
}

func (q *queue) leave() { <-q.slots }
