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
)

// publish sends the outputs in order, or side by side where no order is
// promised. Those that are stored are tried until they are, as long as the
// stage runs; telemetry is tried once. The error is nil unless the stage ends
// in the middle. The parts of a plan for several hosts go side by side after its
// pieces.
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

// unordered tells whether the order of the values does not matter: of each
// subject only the last value counts, and none comes twice.
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
		if info, known := trimtab.InfoOf(at.kind); !known || info.Delivery != trimtab.Latest || seen[at] {
			return false
		}
		seen[at] = true
	}
	return true
}

// sideBySide is how many values of one step are on their way to the store at a
// time. Each waits for its acknowledgement, so one after the other they would
// take the time of the way there and back, times the number of workloads. A store
// that is busy takes 100 ms for it, and what comes in waits meanwhile.
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
	info, known := trimtab.InfoOf(v.Kind())
	stored := known && (info.Delivery == trimtab.Durable || info.Delivery == trimtab.Latest)
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

// term returns a context that ends with the leader's lock, and whether this
// stage may publish: always without a lock, else only while it is held for
// the epoch that the step was told.
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
