package natsbus

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/codec"
)

// nearAnswerer is a subscription to an Answered kind whose publishers are in this process: each
// publisher runs the handler itself, one at a time, so that a value is neither copied nor passed
// between goroutines. This halves the cost of small batches of spans.
type nearAnswerer struct {
	bus.Subscription
	kind *kind
	// turn has an element while a publisher runs the handler.
	turn  chan struct{}
	waits atomic.Int64
	// ended ends when the subscription does.
	ended context.Context
}

// answers starts a subscription to an Answered kind.
func (n *near) answers(_ context.Context, k *kind, s bus.Subscription) (stop func(), err error) {
	ended, end := context.WithCancel(context.Background())
	a := &nearAnswerer{Subscription: s, kind: k, turn: make(chan struct{}, 1), ended: ended}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		end()
		return nil, errClosed
	}
	n.answerers = append(n.answerers, a)
	forget := n.bus.subscriptions.watch(a)
	return func() {
		forget()
		n.mu.Lock()
		n.answerers = slices.DeleteFunc(n.answerers, func(o *nearAnswerer) bool { return o == a })
		n.mu.Unlock()
		end()
		a.turn <- struct{}{} // the handler has returned, and runs no more
	}, nil
}

// ask has v handled by one consumer of each group, and by all consumers without a group. It
// returns nil if one of them handled it, else the error of the last.
func (n *near) ask(ctx context.Context, k *kind, v trimtab.Value, o trimtab.Origin) error {
	// Spans, which are all that is answered, travel as they are: this only checks them.
	if _, err := codec.Encode(v, o); err != nil {
		return err
	}
	all, err := n.answerersOf(k, v.Key())
	if err != nil {
		return err
	}
	err = bus.ErrNoConsumer
	handled := false
	for _, a := range all {
		if err = a.handle(ctx, n.bus.config.AnswerTimeout, bus.Delivery{Value: v, Origin: o}); err == nil {
			handled = true
		}
	}
	if handled {
		return nil
	}
	return err
}

// answerersOf returns the consumers that are to handle a value of a key.
func (n *near) answerersOf(k *kind, key string) (all []*nearAnswerer, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errClosed
	}
	groups := map[string][]*nearAnswerer{}
	for _, a := range n.answerers {
		switch {
		case a.kind != k || a.Key != "" && a.Key != key:
		case a.Consumer == "":
			all = append(all, a)
		default:
			group := a.Consumer + " " + a.Key
			groups[group] = append(groups[group], a)
		}
	}
	for group, members := range groups {
		at := string(k.Kind) + " " + group
		n.turn[at]++
		all = append(all, members[n.turn[at]%len(members)])
	}
	return all, nil
}

// handle waits for its turn, at most atMost, and runs the handler.
func (a *nearAnswerer) handle(ctx context.Context, atMost time.Duration, d bus.Delivery) error {
	select {
	case a.turn <- struct{}{}:
	default:
		if err := a.wait(ctx, atMost); err != nil {
			return err
		}
	}
	defer func() { <-a.turn }()
	if a.ended.Err() != nil {
		return stopped()
	}
	err := a.Handle(a.ended, d)
	a.kind.delivered.Add(1)
	return err
}

// wait waits while another publisher has its turn.
func (a *nearAnswerer) wait(ctx context.Context, atMost time.Duration) error {
	a.waits.Add(1)
	defer a.waits.Add(-1)
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	select {
	case a.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", bus.ErrNoConsumer, ctx.Err())
	case <-a.ended.Done():
		return stopped()
	}
}

// stopped is the error that publishers get whose consumer ended.
func stopped() error { return fmt.Errorf("consumer stopped: %w", bus.ErrNoConsumer) }

// queue returns how many values wait.
func (a *nearAnswerer) queue(context.Context) (bus.Queue, error) {
	return bus.Queue{For: a.For, Kind: a.Kind, Consumer: a.Consumer, Waiting: uint64(a.waits.Load())}, nil
}
