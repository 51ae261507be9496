package natsbus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/internal/pause"
	"github.com/trimtab/trimtab/topic"
)

// Subscribe starts delivery; see [bus.Bus]. A new group of a stored kind
// starts with everything that is still stored.
func (b *Bus) Subscribe(ctx context.Context, s bus.Subscription) (func(), error) {
	k := b.kinds[s.Kind]
	if k == nil || k.Delivery == topic.Local || s.Handle == nil {
		return nil, trimtab.Invalidf("subscribe to %.40q: no such kind, or no handler", s.Kind)
	}
	start := b.subscribeCore
	switch {
	case b.near != nil && k.Delivery == topic.Answered:
		start = b.near.answers
	case b.near.carries(k) && (k.Delivery == topic.Shed || s.Consumer == ""):
		start = b.near.subscribe
	case k.stream.Name != "":
		start = b.subscribeStored
	}
	stop, err := start(ctx, k, s)
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", s.Kind, err)
	}
	kept, err := b.subscriptions.keep(stop)
	if err != nil {
		stop()
		return nil, fmt.Errorf("subscribe to %s: %w", s.Kind, err)
	}
	return kept, nil
}

// filter returns the subject that s subscribes to.
func filter(s bus.Subscription) string {
	if s.Key == "" {
		return "trimtab." + string(s.Kind) + ".*"
	}
	return bus.Subject(s.Kind, s.Key)
}

// read decodes a message of kind k and checks that its subject matches its value.
func (k *kind) read(subject string, h nats.Header, data []byte) (trimtab.Value, trimtab.Origin, error) {
	key, ok := bus.UnescapeKey(subject[strings.LastIndexByte(subject, '.')+1:])
	if !ok {
		return nil, trimtab.Origin{}, trimtab.Invalidf("read %s: subject %.80q", k.Kind, subject)
	}
	if k.Kind == trimtab.KindSpans {
		return readFrame(key, h, data)
	}
	data, err := unpack(h, data)
	if err != nil {
		return nil, trimtab.Origin{}, fmt.Errorf("read %s: %w", k.Kind, err)
	}
	v, o, err := codec.Decode(k.Kind, data)
	if err == nil && v.Key() != key {
		err = trimtab.Invalidf("read %s of %.80q on the subject of %.80q", k.Kind, v.Key(), key)
	}
	if err == nil && codec.Older(k.Kind, data) {
		k.older.Add(1)
	}
	return v, o, err
}

// published returns an error for a message that a stream sent as the answer to a request.
func published(h nats.Header) error {
	if from := h.Get(jetstream.StreamHeader); from != "" {
		return trimtab.Invalidf("no stage published this, it is an answer of the stream %.80q", from)
	}
	return nil
}

// readFrame wraps a span frame without copying it.
func readFrame(key string, h nats.Header, data []byte) (trimtab.Value, trimtab.Origin, error) {
	partition, err := strconv.Atoi(key)
	if err != nil {
		return nil, trimtab.Origin{}, trimtab.Invalidf("read spans: partition %.20q", key)
	}
	o, _, _ := parseOrigin(h.Get(headerOrigin))
	f, err := codec.Frame(partition, data)
	return f, o, err
}

// coreSub is a subscription to a kind that is not stored.
type coreSub struct {
	bus  *Bus
	kind *kind
	sub  *nats.Subscription
	lost *losses
	bus.Subscription
}

// group names those that share one count of losses; empty: this one alone.
func (c *coreSub) group() string {
	if c.Consumer == "" {
		return ""
	}
	return c.Consumer + " " + filter(c.Subscription)
}

func (b *Bus) subscribeCore(ctx context.Context, k *kind, s bus.Subscription) (func(), error) {
	c := &coreSub{bus: b, kind: k, Subscription: s}
	subject, group := filter(s), bus.EscapeKey(s.Consumer)
	if k.Delivery == topic.Shed && !byItself(kindPrefix(k.Kind)) {
		subject = kindPrefix(k.Kind) + "*" // a value of any key may travel with others
		if s.Key != "" {
			group += "--" + bus.EscapeKey(s.Key) // members of another key are another group
		}
	}
	var err error
	if s.Consumer == "" {
		c.sub, err = b.conn.SubscribeSync(subject)
	} else {
		c.sub, err = b.conn.QueueSubscribeSync(subject, group)
	}
	if err != nil {
		return nil, err
	}
	err = c.sub.SetPendingLimits(-1, b.config.PendingBytes)
	if k.Delivery == topic.Answered {
		// Each request has a publisher that waits for the answer, so the publishers bound the
		// number of messages.
		err = c.sub.SetPendingLimits(-1, 16*b.config.PendingBytes)
	}
	if err == nil {
		err = b.flush(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.sub.Unsubscribe())
	}
	c.lost = k.lost.join(c.group())
	run, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.run(run)
	}()
	forget := b.subscriptions.watch(c)
	return func() { forget(); cancel(); <-done }, nil
}

func (c *coreSub) run(ctx context.Context) {
	for ctx.Err() == nil {
		m, err := c.sub.NextMsgWithContext(ctx)
		switch {
		case err == nil:
			c.handle(ctx, m)
		case errors.Is(err, nats.ErrSlowConsumer):
			// The client dropped some: the gap in the sequence counts them.
		case ctx.Err() != nil:
		default:
			if c.sub.IsValid() {
				pause.For(ctx, 10*time.Millisecond)
				continue
			}
			if c.Trouble != nil {
				c.Trouble(err)
			}
			<-ctx.Done()
		}
	}
	c.giveBack()
	c.kind.lost.leave(c.group(), c.lost)
}

// handle delivers the values in a message, and answers it.
func (c *coreSub) handle(ctx context.Context, m *nats.Msg) {
	key := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	switch {
	case c.kind.Delivery != topic.Shed:
		answer(m, c.deliver(ctx, m))
	case key != manyKey:
		c.handleShed(ctx, key, m.Header.Get(headerOrigin), m)
	default:
		err := published(m.Header)
		if err == nil {
			err = apart(c.kind.Kind, m, func(v *shed) { c.handleShed(ctx, v.key, v.origin, v.message()) })
		}
		if err != nil {
			c.kind.unreadable.Add(1)
		}
	}
}

// handleShed delivers one value of a Shed kind, if the subscription wants its key and has not ended.
func (c *coreSub) handleShed(ctx context.Context, key, origin string, m *nats.Msg) {
	if ctx.Err() != nil || c.Key != "" && bus.EscapeKey(c.Key) != key {
		return
	}
	if o, place, ok := parseOrigin(origin); ok && place > 0 {
		c.lost.arrived(sequenceID{o.Source, o.Incarnation, m.Subject}, place, time.Now())
	}
	answer(m, c.deliver(ctx, m))
}

// deliver reads a message with one value and returns its handler's error.
func (c *coreSub) deliver(ctx context.Context, m *nats.Msg) error {
	err := published(m.Header)
	var v trimtab.Value
	var o trimtab.Origin
	if err == nil {
		v, o, err = c.kind.read(m.Subject, m.Header, m.Data)
	}
	if err != nil {
		c.kind.unreadable.Add(1)
		return err
	}
	err = c.Handle(ctx, bus.Delivery{Value: v, Origin: o})
	c.kind.delivered.Add(1)
	return err
}

// answer sends the publisher the result of its request, if it asked.
func answer(m *nats.Msg, err error) {
	if m.Reply == "" {
		return
	}
	reply := &nats.Msg{Subject: m.Reply}
	if err != nil {
		reply.Header = nats.Header{headerError: {headerText(err)}}
		for name, known := range errorKinds() {
			if errors.Is(err, known) {
				reply.Header.Set(headerErrorKind, name)
			}
		}
	}
	// The publisher's time-out covers an answer that cannot be sent.
	_ = m.RespondMsg(reply)
}

// headerText makes an error fit into one header line.
func headerText(err error) string {
	s := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, err.Error())
	if len(s) > 1024 {
		s = s[:1024]
	}
	return or(s, "error")
}

// giveBack ends the subscription, and answers the publishers that still wait that this consumer has
// gone.
func (c *coreSub) giveBack() {
	if c.kind.Delivery != topic.Answered {
		_ = c.sub.Unsubscribe()
		return
	}
	if err := c.sub.Drain(); err != nil {
		return
	}
	defer func() { _ = c.sub.Unsubscribe() }() // as in pull.close
	for {
		m, err := c.sub.NextMsg(50 * time.Millisecond)
		if err != nil {
			return
		}
		answer(m, fmt.Errorf("consumer stopped: %w", bus.ErrNoConsumer))
	}
}
