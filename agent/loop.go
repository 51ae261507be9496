// Package agent runs the control loops that a host has beside the stages: package fast moves CPU
// quotas, package beside runs best-effort jobs and speculative tasks. A round of each has the same
// steps,
//
//	look → decide → act → tell → save
//
// and continues without the bus:
//
//	loop := agent.Loop[*seen, decision]{Every: time.Second, Look: look, Decide: decide, Act: act, Tell: tell}
//	err := loop.Run(ctx)
//
// The frame has no rule of its own: its functions measure, decide and act.
package agent

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/trimtab/trimtab/bus"
)

// Loop is one control loop of a host. Round calls its functions one after the other, so their
// shared state needs no lock.
type Loop[Seen, Decision any] struct {
	// Every is the time between two rounds; it must be positive.
	Every time.Duration
	// Wake starts a round early, but no sooner than Gap after the last one; nil: rounds start only
	// at Every.
	Wake <-chan struct{}
	Gap  time.Duration
	// Look measures and reads the inputs of the decision.
	Look func(ctx context.Context, now time.Time) Seen
	// Decide decides what to do. If the decision depends on the results of the actuator, Decide
	// waits for them until ctx ends.
	Decide func(ctx context.Context, now time.Time, seen Seen) Decision
	// Act carries out the part of the decision that Decide has not carried out already.
	Act func(ctx context.Context, now time.Time, d Decision)
	// Tell reports the result to people and to other parts.
	Tell func(ctx context.Context, now time.Time, d Decision)
	// Save stores the learned state every SaveEvery, the first time that long after the first
	// round; nil: nothing is saved.
	Save      func(ctx context.Context, now time.Time)
	SaveEvery time.Duration
	// Took is called with the duration of each round; it may be nil.
	Took func(time.Duration)

	saved time.Time
}

// Run runs rounds until ctx ends: the first at once, the next ones at Every and Wake.
func (l *Loop[Seen, Decision]) Run(ctx context.Context) error {
	ticker := time.NewTicker(l.Every)
	defer ticker.Stop()
	for {
		l.Round(ctx, time.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			continue
		case <-l.Wake:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(l.Gap):
		}
	}
}

// Round runs one round.
func (l *Loop[Seen, Decision]) Round(ctx context.Context, now time.Time) {
	began := time.Now()
	d := l.Decide(ctx, now, l.Look(ctx, now))
	l.Act(ctx, now, d)
	l.Tell(ctx, now, d)
	switch {
	case l.Save == nil:
	case l.saved.IsZero():
		l.saved = now // nothing was learned yet
	case now.Sub(l.saved) >= l.SaveEvery || now.Before(l.saved):
		l.saved = now
		l.Save(ctx, now)
	}
	if l.Took != nil {
		l.Took(time.Since(began))
	}
}

// Listen subscribes in the background, and retries at the given interval while the bus fails. stop
// ends the subscriptions and waits until they have ended.
func Listen(ctx context.Context, b bus.Bus, every time.Duration, logger *slog.Logger, all ...bus.Subscription) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var listening sync.WaitGroup
	for _, s := range all {
		listening.Go(func() {
			for {
				end, err := b.Subscribe(ctx, s)
				if err == nil {
					<-ctx.Done()
					end()
					return
				}
				logger.Debug("subscribe", "for", s.For, "kind", s.Kind, "err", err)
				select {
				case <-ctx.Done():
					return
				case <-time.After(every):
				}
			}
		})
	}
	return func() { cancel(); listening.Wait() }
}
