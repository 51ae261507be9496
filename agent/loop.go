// Package agent has the frame of the control loops that a host runs beside the stages:
// package fast moves CPU quotas, package beside runs best-effort jobs and speculative
// tasks. All of them go round in the same order,
//
//	look → decide → act → tell → save
//
// and none needs the bus to go on:
//
//	loop := agent.Loop[*seen, decision]{Every: time.Second, Look: look, Decide: decide, Act: act, Tell: tell}
//	err := loop.Run(ctx)
//
// The frame has no rule of its own: what is decided, and from what, is in the functions.
package agent

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/trimtab/trimtab/bus"
)

// Loop is one control loop of a host. Round calls its functions one after the other, so
// what they share needs no lock.
type Loop[Seen, Decision any] struct {
	// Every is how often it goes round; positive.
	Every time.Duration
	// Wake has it go round earlier, but no sooner than Gap after that; nil: nothing does.
	Wake <-chan struct{}
	Gap  time.Duration
	// Look measures and reads what there is to decide on.
	Look func(ctx context.Context, now time.Time) Seen
	// Decide decides what to do. If the decision needs answers of the parts that carry it out,
	// Decide waits for them, within ctx.
	Decide func(ctx context.Context, now time.Time, seen Seen) Decision
	// Act does what was decided, as far as it is not done yet.
	Act func(ctx context.Context, now time.Time, d Decision)
	// Tell says to people, and to other parts, what came of it.
	Tell func(ctx context.Context, now time.Time, d Decision)
	// Save saves what was learned, every SaveEvery, first that long after the first round. nil:
	// nothing is saved.
	Save      func(ctx context.Context, now time.Time)
	SaveEvery time.Duration
	// Took is called with the duration of each round; nil: not called.
	Took func(time.Duration)

	saved time.Time
}

// Run runs rounds until ctx ends: the first at once, then as Every and Wake say.
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

// Listen subscribes until stop is called, which waits for the end. While the bus cannot be
// subscribed to, it retries at the given interval, in the background.
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
