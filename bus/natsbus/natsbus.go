package natsbus

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/topic"
)

// Bus is a connection to NATS, with the server where that is embedded.
type Bus struct {
	store
	incarnation   uint64
	sequence      atomic.Uint64
	kinds         map[trimtab.Kind]*kind
	shed          *shedder // nil with near
	near          *near    // nil where others can reach this bus
	reads         reads
	subscriptions subscriptions
}

var _ bus.Bus = (*Bus)(nil)

// kind is the bus's state and counts for one kind.
type kind struct {
	topic.Topic
	stream StreamInfo
	lost   lossBook
	// shed counts the values that did not fit into a queue of this process.
	shed atomic.Uint64

	published, delivered, unreadable, again, older atomic.Uint64
	// unstored is why the last attempt to store a value failed; nil: it did not.
	unstored atomic.Pointer[error]
}

// Open starts or reaches the server and makes the streams. ctx bounds only
// the opening. Errors name the directory, the address or the URL.
func Open(ctx context.Context, c Config) (*Bus, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	b := newBus(c.withDefaults())
	if err := b.readSecret(); err != nil {
		return nil, err
	}
	if err := b.open(ctx); err != nil {
		return nil, err
	}
	if b.near = openNear(ctx, b); b.near == nil {
		b.shed = startShedder(b.conn, b.config.PendingBytes)
	}
	return b, nil
}

// newBus is a bus of a complete configuration that is not yet connected.
func newBus(c Config) *Bus {
	b := &Bus{
		store: store{connection: connection{config: c, again: make(chan struct{})}, streams: tableOf(c)},
		kinds: map[trimtab.Kind]*kind{}, subscriptions: subscriptions{stops: map[int]func(){}, live: map[watched]struct{}{}},
		// Microseconds: unique for one source, and exact in JSON of any language.
		incarnation: uint64(time.Now().UnixMicro()),
	}
	for _, info := range topic.All() {
		b.kinds[info.Kind] = &kind{Topic: info}
	}
	for _, s := range b.streams {
		if k := b.kinds[s.Kind]; k != nil {
			k.stream = s
		}
	}
	return b
}

// open connects, and replaces an embedded store whose streams cannot be used.
func (b *Bus) open(ctx context.Context) error {
	if err := b.connect(); err != nil {
		return err
	}
	err := b.permitted(ctx)
	if err == nil {
		err = b.awaitStreams(ctx)
	}
	if err == nil && b.config.Leaf != "" {
		if err = b.becomeLeaf(ctx); err == nil {
			err = b.awaitStreams(ctx)
		}
	}
	if err == nil {
		return nil
	}
	b.disconnect()
	if b.config.URL != "" || ctx.Err() != nil || !mayBeCorrupt(err) {
		return fmt.Errorf("open bus %s: %w", or(redact(b.config.URL), b.config.Dir), err)
	}
	if err := startOver(b.config, err); err != nil {
		return err
	}
	b.damaged.stores.Add(1)
	if err := b.connect(); err != nil {
		return err
	}
	if err := b.makeStreams(ctx); err != nil {
		b.disconnect()
		return fmt.Errorf("make streams in %s: %w", b.config.Dir, err)
	}
	return nil
}

// Unstored returns why the last attempt to store a value of a kind failed, also
// while Publish still tries; nil when it did not fail.
func (b *Bus) Unstored(kind trimtab.Kind) error {
	if k := b.kinds[kind]; k != nil {
		if err := k.unstored.Load(); err != nil {
			return *err
		}
	}
	return nil
}

// Stats returns the counts; see [bus.Stats].
func (b *Bus) Stats() bus.Stats {
	s := bus.Stats{
		Published: map[trimtab.Kind]uint64{}, Delivered: map[trimtab.Kind]uint64{}, Lost: map[trimtab.Kind]uint64{},
		Unreadable: map[trimtab.Kind]uint64{}, Again: map[trimtab.Kind]uint64{}, Older: map[trimtab.Kind]uint64{},
	}
	now := time.Now()
	for name, k := range b.kinds {
		s.Published[name] = k.published.Load()
		s.Delivered[name] = k.delivered.Load()
		s.Lost[name] = k.lost.total(now) + k.shed.Load()
		s.Unreadable[name] = k.unreadable.Load()
		s.Again[name] = k.again.Load()
		s.Older[name] = k.older.Load()
	}
	return s
}

// Close ends all subscriptions, sends the values that wait, and stops an embedded server. It
// returns nil.
func (b *Bus) Close() error {
	stops, first := b.subscriptions.close()
	if !first {
		return nil
	}
	for _, stop := range stops {
		stop()
	}
	b.near.close()
	if b.shed != nil {
		b.shed.close()
	}
	if b.conn.IsConnected() {
		// Waits until the server has read the values that Publish sent.
		_ = b.conn.FlushTimeout(time.Second)
	}
	if b.server != nil {
		b.making.Lock()
		defer b.making.Unlock()
	}
	b.disconnect()
	return nil
}
