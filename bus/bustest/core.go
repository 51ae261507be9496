package bustest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/trimtab/trimtab/bus"
)

// coreSub is a subscription to a kind that is not stored.
type coreSub struct {
	bus.Subscription
	memory *Memory
	queue  chan *message
}

// subscribeCore needs m.mu, and so does queue.
func (m *Memory) subscribeCore(s bus.Subscription) (stop func(), queue func() bus.Queue) {
	c := &coreSub{Subscription: s, memory: m, queue: make(chan *message, m.Pending)}
	m.core[s.Kind] = append(m.core[s.Kind], c)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			select {
			case msg := <-c.queue:
				c.handle(ctx, msg)
			case <-ctx.Done():
			}
		}
	}()
	return func() {
			m.mu.Lock()
			m.core[s.Kind] = slices.DeleteFunc(m.core[s.Kind], func(o *coreSub) bool { return o == c })
			m.mu.Unlock()
			cancel()
			<-done
			c.giveBack()
		}, func() bus.Queue {
			return bus.Queue{For: s.For, Kind: s.Kind, Consumer: s.Consumer, Waiting: uint64(len(c.queue))}
		}
}

func (c *coreSub) handle(ctx context.Context, msg *message) {
	v, o, err := c.memory.read(msg)
	if err == nil {
		err = c.Handle(ctx, bus.Delivery{Value: v, Origin: o})
		c.memory.count(c.memory.stats.Delivered, msg.kind)
	}
	if msg.answer != nil {
		msg.answer <- err
	}
}

// giveBack tells publishers that wait for an answer that this consumer has stopped.
func (c *coreSub) giveBack() {
	for {
		select {
		case msg := <-c.queue:
			if msg.answer != nil {
				msg.answer <- fmt.Errorf("consumer stopped: %w", bus.ErrNoConsumer)
			}
		default:
			return
		}
	}
}

// receivers selects the subscriptions that get msg: all without a name, and one of each group in
// turn. The caller holds m.mu.
func (m *Memory) receivers(msg *message) []*coreSub {
	var out []*coreSub
	groups := map[string][]*coreSub{}
	var order []string
	for _, c := range m.core[msg.kind] {
		switch {
		case c.Key != "" && c.Key != msg.key:
		case c.Consumer == "":
			out = append(out, c)
		default:
			if groups[c.Consumer] == nil {
				order = append(order, c.Consumer)
			}
			groups[c.Consumer] = append(groups[c.Consumer], c)
		}
	}
	for _, name := range order {
		at := string(msg.kind) + " " + name
		m.turn[at]++
		out = append(out, groups[name][m.turn[at]%len(groups[name])])
	}
	return out
}

// shed gives msg to all whose queue has space. Here the bus itself sees which are full, and needs
// no sequence numbers to count losses.
func (m *Memory) shed(msg *message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.receivers(msg) {
		select {
		case c.queue <- msg:
		default:
			m.stats.Lost[msg.kind]++
		}
	}
}

// ask hands msg to one consumer and waits for its answer.
func (m *Memory) ask(ctx context.Context, msg *message) error {
	ctx, cancel := context.WithTimeout(ctx, m.AnswerTimeout)
	defer cancel()
	m.mu.Lock()
	receivers := m.receivers(msg)
	// The first answer counts, so there is room for all.
	msg.answer = make(chan error, len(receivers))
	m.mu.Unlock()
	if len(receivers) == 0 {
		return bus.ErrNoConsumer
	}
	for _, c := range receivers {
		select {
		case c.queue <- msg:
		case <-ctx.Done():
			return noAnswer(ctx)
		}
	}
	select {
	case err := <-msg.answer:
		return err
	case <-ctx.Done():
		return noAnswer(ctx)
	}
}

func noAnswer(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", bus.ErrNoConsumer, ctx.Err())
	}
	return ctx.Err()
}
