package natsbus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
)

// Queues asks the server; see [bus.Bus]. With an error it also returns what it found.
func (b *Bus) Queues(ctx context.Context) (bus.Queues, error) {
	subs, closed := b.subscriptions.watched()
	out := bus.Queues{Aside: map[trimtab.Kind]uint64{}}
	if closed {
		return out, fmt.Errorf("ask bus for queues: %w", errClosed)
	}
	// All are asked at once: one after the other, twenty answers of a server
	// that is busy take most of a second.
	queues, failed := make([]bus.Queue, len(subs)), make([]error, len(subs))
	var asking sync.WaitGroup
	for i, w := range subs {
		asking.Go(func() { queues[i], failed[i] = w.queue(ctx) })
	}
	var errs error
	asking.Go(func() { errs = b.aside(ctx, out.Aside) })
	asking.Wait()
	for i, err := range failed {
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			continue // the consumer ended, or is about to be created again
		}
		if err != nil {
			errs = errors.Join(errs, err)
			continue
		}
		out.Waiting = append(out.Waiting, queues[i])
	}
	slices.SortFunc(out.Waiting, func(x, y bus.Queue) int {
		return cmp.Or(cmp.Compare(x.For, y.For), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Consumer, y.Consumer))
	})
	if errs != nil {
		return out, fmt.Errorf("ask bus for queues: %w", errs)
	}
	return out, nil
}

// aside counts the dead letters, by kind.
func (b *Bus) aside(ctx context.Context, into map[trimtab.Kind]uint64) error {
	s, err := b.js.Stream(ctx, "UNREADABLE")
	if err != nil {
		return err
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(unreadableSubject+"*"))
	if err != nil {
		return err
	}
	for subject, n := range info.State.Subjects {
		into[trimtab.Kind(strings.TrimPrefix(subject, unreadableSubject))] += n
	}
	return nil
}

// queue returns the server's queue for the consumer.
func (d *storedSub) queue(ctx context.Context) (bus.Queue, error) {
	q := bus.Queue{For: d.For, Kind: d.Kind, Consumer: d.Consumer}
	c, err := d.bus.js.Consumer(ctx, d.kind.stream.Name, d.name)
	if err != nil {
		return q, err
	}
	info := c.CachedInfo()
	q.Waiting, q.Again = info.NumPending+uint64(info.NumAckPending), uint64(info.NumRedelivered)
	if q.Waiting == 0 {
		return q, nil
	}
	s, err := d.bus.js.Stream(ctx, d.kind.stream.Name)
	if err != nil {
		return q, err
	}
	first, err := s.GetMsg(ctx, info.AckFloor.Stream+1, jetstream.WithGetMsgSubject(filter(d.Subscription)))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return q, nil // handled meanwhile, or replaced by a newer message
	}
	if err != nil {
		return q, err
	}
	q.Oldest = first.Time
	return q, nil
}

// queue returns how many received messages the subscription has not handled.
func (c *coreSub) queue(context.Context) (bus.Queue, error) {
	q := bus.Queue{For: c.For, Kind: c.Kind, Consumer: c.Consumer}
	n, _, err := c.sub.Pending()
	if err == nil {
		q.Waiting = uint64(max(n, 0))
	}
	// A subscription that just ended has nothing waiting.
	return q, nil
}
