package pipeline

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/internal/pause"
	"github.com/trimtab/trimtab/topic"
)

// publish sends the outputs in order, or concurrently if their order does not matter. Stored
// kinds are retried as long as the stage runs; telemetry is sent once. The error is nil unless
// the stage ends meanwhile. The parts of a plan for several hosts are sent concurrently, after
// its pieces.
func (r *stage) publish(ctx context.Context, out []trimtab.Value) error {
	if r.lock == nil && unordered(out) {
		return r.publishSideBySide(ctx, out)
	}
	for _, v := range out {
		if v == nil {
			continue
		}
		pieces, parts := []trimtab.Value{v}, []trimtab.Value(nil)
		if p, ok := v.(*trimtab.Plan); ok {
			pieces, parts = p.Split()
		}
		for _, piece := range pieces {
			if err := r.publishOne(ctx, piece); err != nil {
				return err
			}
		}
		if len(parts) == 0 {
			continue
		}
		if err := r.publishSideBySide(ctx, parts); err != nil {
			return err
		}
	}
	return nil
}

// unordered reports whether the order of the values does not matter: for each subject only the
// last value counts, and no subject occurs twice.
func unordered(out []trimtab.Value) bool {
	if len(out) < 2 {
		return false
	}
	type subject struct {
		kind trimtab.Kind
		key  string
	}
	seen := make(map[subject]bool, len(out))
	for _, v := range out {
		if v == nil {
			return false
		}
		at := subject{v.Kind(), v.Key()}
		if info, known := topic.Of(at.kind); !known || info.Delivery != topic.Latest || seen[at] {
			return false
		}
		seen[at] = true
	}
	return true
}

// sideBySide is the largest number of values of one step that await their acknowledgement at a
// time. One after the other they would take a round trip for each workload. A busy store takes 100
// ms for one, and inputs wait meanwhile.
const sideBySide = 256

func (r *stage) publishSideBySide(ctx context.Context, out []trimtab.Value) error {
	next, failed := make(chan trimtab.Value), make(chan error, sideBySide)
	var senders sync.WaitGroup
	for range min(sideBySide, len(out)) {
		senders.Go(func() {
			for v := range next {
				if err := r.publishOne(ctx, v); err != nil {
					failed <- err // and the rest goes the same way, by ctx
					return
				}
			}
		})
	}
	var err error
	for _, v := range out {
		select {
		case next <- v:
		case err = <-failed:
		}
		if err != nil {
			break
		}
	}
	close(next)
	senders.Wait()
	if err == nil && len(failed) > 0 {
		err = <-failed
	}
	return err
}

func (r *stage) publishOne(ctx context.Context, v trimtab.Value) error {
	info, known := topic.Of(v.Kind())
	stored := known && (info.Delivery == topic.Durable || info.Delivery == topic.Latest)
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		term, end, leads := r.term(ctx)
		if !leads {
			r.counts.fenced(v.Kind())
			return nil
		}
		r.lock.sends(v)
		err := r.Bus.Publish(term, v)
		end()
		switch {
		case err == nil:
			r.counts.output(v.Kind())
			return nil
		case errors.Is(err, trimtab.ErrInvalid):
			// The same value fails again: a fault of the step, not of the bus.
			r.counts.refused(v.Kind())
			r.Logger.Error("step gave a value that is not valid", "kind", v.Kind(), "key", v.Key(), "err", err)
			return nil
		case !stored:
			r.counts.refused(v.Kind())
			r.Logger.Debug("output not published", "kind", v.Kind(), "key", v.Key(), "err", err)
			return nil
		}
		if errors.Is(err, bus.ErrEnding) {
			return err
		}
		r.counts.retried(v.Kind())
		r.Logger.Warn("output not stored, trying again", "kind", v.Kind(), "key", v.Key(), "err", err)
		if !pause.For(ctx, wait) {
			return err
		}
	}
}

// term returns a context that ends with the leader's lock, and whether this stage may publish:
// always without a lock, else only while it holds the lock for the epoch that the step knows.
func (r *stage) term(ctx context.Context) (context.Context, context.CancelFunc, bool) {
	if r.lock == nil {
		return ctx, func() {}, true
	}
	epoch, until := r.lock.held()
	if epoch == 0 || epoch != r.epoch {
		return ctx, func() {}, false
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	return ctx, cancel, true
}

func stack() string { return string(debug.Stack()) }
