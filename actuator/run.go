package actuator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
)

// Run takes plans and commands from b, publishes outcomes and holdings, and enforces the leases,
// until ctx ends. The bus may be unreachable for a time: leases expire without it. The caller must
// call Close afterwards.
func (a *Actuator) Run(ctx context.Context, b bus.Bus) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	// Leases first, since they do not need the bus, which may not answer yet.
	wg.Go(func() { a.beat(ctx) })
	defer wg.Wait()
	defer cancel()
	stops, err := a.subscribe(ctx, b)
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	if err != nil {
		return fmt.Errorf("run actuator: %w", err)
	}
	wg.Go(func() { a.report(ctx, b) })
	<-ctx.Done()
	return nil
}

// subscribe starts the delivery of plans and commands.
func (a *Actuator) subscribe(ctx context.Context, b bus.Bus) (stops []func(), err error) {
	onPlan := func(ctx context.Context, d bus.Delivery) error { return a.onPlan(ctx, b, d) }
	for _, s := range []bus.Subscription{
		{Kind: trimtab.KindCommand, Key: a.config.Pool, Handle: a.onCommand},
		{Kind: trimtab.KindPlan, Key: a.config.Pool, Handle: onPlan},
		// The parts for this host of plans for several hosts.
		{Kind: trimtab.KindPart, Key: (&trimtab.Plan{Pool: a.config.Pool, Host: a.config.Host}).Key(), Handle: onPlan},
	} {
		if limit := a.config.Limits.MaxLease; limit > 0 && s.Kind != trimtab.KindCommand {
			// Older plans would be refused one by one, and the stream may have thousands of them.
			s.MaxAge = limit + a.config.Limits.Skew
		}
		s.Consumer, s.For = "actuator-"+a.config.Host, "actuator"
		stop, err := b.Subscribe(ctx, s)
		if err != nil {
			return stops, fmt.Errorf("subscribe to %s: %w", s.Kind, err)
		}
		stops = append(stops, stop)
	}
	return stops, nil
}

func (a *Actuator) onCommand(ctx context.Context, d bus.Delivery) error {
	c, ok := d.Value.(*trimtab.Command)
	if !ok {
		return nil
	}
	return a.Command(ctx, c)
}

// beat calls Tick at every heartbeat, and when the lease expires.
func (a *Actuator) beat(ctx context.Context) {
	for {
		a.mu.Lock()
		wait := a.config.Heartbeat
		if left := a.fence.left(); a.knobs.holds() && (left > 0 || !a.fence.expired || a.baselines.unrestored > 0) {
			// If a plan shortens the lease meanwhile, the next heartbeat comes before its end.
			wait = min(wait, left+time.Millisecond)
			if borrowed := a.fence.leftBorrowed(); borrowed > 0 || !a.fence.returned {
				wait = min(wait, borrowed+time.Millisecond)
			}
		}
		a.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
			a.Tick(ctx)
		}
	}
}

// report publishes the holding at the start, at every change, and at intervals without a change. A
// bus that does not answer delays only this.
func (a *Actuator) report(ctx context.Context, b bus.Bus) {
	var last *trimtab.Holding // the holding published last
	for beats := 1; ; beats++ {
		again := time.Duration(beats)*a.config.Heartbeat >= a.repeat()
		if h := a.Holding(); last == nil || again || changed(last, h) {
			publish, cancel := context.WithTimeout(ctx, 5*a.config.Heartbeat)
			last, beats = h, 0
			if err := b.Publish(publish, h); err != nil && ctx.Err() == nil {
				a.logger.Warn("publish holding", "err", err)
				last = nil
			}
			cancel()
		}
		select {
		case <-ctx.Done():
			return
		case <-a.changed:
		case <-time.After(a.config.Heartbeat):
		}
	}
}

// repeat returns the time after which an unchanged holding is published again. If plans have a
// shorter lease than this host's configuration, it follows the plans.
func (a *Actuator) repeat() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if length := a.fence.lease.Length.Duration(); length > 0 {
		return min(a.config.Repeat, RepeatOf(length))
	}
	return a.config.Repeat
}

// changed reports whether two holdings differ in more than the time, the rest of the lease, and the
// current usage.
func changed(before, now *trimtab.Holding) bool {
	if before.Epoch != now.Epoch || before.Sequence != now.Sequence || before.Paused != now.Paused ||
		(before.LeaseLeft > 0) != (now.LeaseLeft > 0) || before.Divided != now.Divided || before.Pace != now.Pace || !maps.Equal(before.Capacity, now.Capacity) {
		return true
	}
	return !slices.EqualFunc(before.Targets, now.Targets, func(x, y trimtab.KnobState) bool {
		same := x.InForce() == y.InForce() && (x.Effective == nil) == (y.Effective == nil)
		same = same && !moved(x.Fast, y.Fast)
		x.Effective, y.Effective = nil, nil
		x.Fast, y.Fast = nil, nil
		x.Floor, x.Min, y.Floor, y.Min = 0, 0, 0, 0
		same = same && (x.Status == y.Status || reflect.DeepEqual(x.Status, y.Status))
		x.Status, y.Status = nil, nil
		return same && x == y
	})
}

// moved reports whether the fast loop changed something between two holdings.
func moved(before, now *trimtab.Fast) bool {
	if before == nil || now == nil {
		return before != now
	}
	ask := func(f *trimtab.Fast) int {
		if f.Ask == nil {
			return 0
		}
		return f.Ask.Number
	}
	return before.Writes != now.Writes || before.Set != now.Set || before.Envelope != now.Envelope || before.Off != now.Off || ask(before) != ask(now)
}

// Close restores the baselines, unless KeepOnStop, also during a pause. It then releases the
// directory and closes the knobs. Calling it again does nothing.
func (a *Actuator) Close(ctx context.Context) error {
	keep := a.config.KeepOnStop
	return a.end(ctx, func(trimtab.KnobID) bool { return keep }, keep)
}

// HandOver closes an actuator whose directory another one opens right afterwards. Knobs for which
// keeps returns true stay set, with their journal and lease; above says whether the parent group's
// knob does. All others are restored.
func (a *Actuator) HandOver(ctx context.Context, keeps func(trimtab.KnobID) bool, above bool) error {
	return a.end(ctx, keeps, above)
}

func (a *Actuator) end(ctx context.Context, keeps func(trimtab.KnobID) bool, above bool) error {
	a.mu.Lock()
	if a.fence.closed {
		a.mu.Unlock()
		return nil
	}
	a.fence.closed = true
	ending := slices.DeleteFunc(slices.Clone(a.knobs.restorable()), func(h *managed) bool {
		if h == a.knobs.parent {
			return above
		}
		return keeps(h.KnobID)
	})
	err := a.baselines.restoreToTheEnd(ctx, ending)
	left := a.knobs.holds()
	err = errors.Join(err, a.host.close(!left), a.knobs.letGo(), a.journal.Close(), a.presence.Close(), a.lock.Close())
	for _, h := range a.knobs.all {
		err = errors.Join(err, h.Knob.Close())
	}
	if p := a.knobs.parent; p != nil {
		err = errors.Join(err, p.Knob.Close())
	}
	a.mu.Unlock()
	// Last, so that the watchdog guards everything before it.
	a.watchdog.Release(len(ending) < len(a.knobs.restorable()))
	return err
}
