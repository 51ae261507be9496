package natsbus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/topic"
)

// Bus is a connection to NATS, with the server where that is embedded.
type Bus struct {
	config Config
	conn   *nats.Conn
	js     jetstream.JetStream
	server *embedded // nil with an external one
	leaf   *leafNode // nil where this process is no leaf node
	secret string    // of an agent, see [SecretOf]

	incarnation uint64
	sequence    atomic.Uint64
	kinds       map[trimtab.Kind]*kind
	streams     []StreamInfo
	shed        *shedder // nil with near
	near        *near    // nil where others can reach this bus
	damaged     struct{ stores, consumers atomic.Uint64 }
	untested    atomic.Bool // see Untested
	reads       reads

	making sync.Mutex // see makes

	// endBy is until when the end of the process may wait; nil: it does not end.
	endBy atomic.Pointer[time.Time]

	mu     sync.Mutex
	closed bool
	again  chan struct{} // closed at the next reconnection
	stops  map[int]func()
	subs   map[watched]struct{}
	nextID int
}

var _ bus.Bus = (*Bus)(nil)

// kind is the bus's state and counts for one kind.
type kind struct {
	topic.Topic
	stream StreamInfo
	lost   lossBook
	// shed counts what did not fit into a queue of this process.
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
		config: c, streams: tableOf(c), kinds: map[trimtab.Kind]*kind{}, stops: map[int]func(){}, subs: map[watched]struct{}{}, again: make(chan struct{}),
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

// readSecret reads the key that identifies an agent.
func (b *Bus) readSecret() error {
	if b.config.Role != Agent || b.config.Key == "" {
		return nil
	}
	key, err := os.ReadFile(b.config.Key)
	if err != nil {
		return fmt.Errorf("read key of the agent: %w", err)
	}
	b.secret = SecretOf(key)
	return nil
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
		err = b.becomeLeaf(ctx)
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

func (b *Bus) connect() error {
	opts, err := b.config.secure()
	if err != nil {
		return err
	}
	opts = append(opts, b.config.options()...)
	opts = append(opts, nats.ReconnectHandler(b.reconnected))
	url := b.config.URL
	if url == "" {
		if b.server, err = startEmbedded(b.config); err != nil {
			return err
		}
		b.damaged.stores.Add(b.server.stores)
		b.damaged.consumers.Add(b.server.consumers)
		opts = append(opts, nats.InProcessServer(b.server))
	}
	if b.conn, err = nats.Connect(url, opts...); err == nil {
		b.js, err = b.jetStream()
	}
	if err != nil {
		b.disconnect()
		if errors.Is(err, nats.ErrAuthorization) {
			err = fmt.Errorf("%w: token, user or credentials are not accepted: %w", trimtab.ErrRefused, err)
		}
		return fmt.Errorf("connect to bus %s: %w", or(redact(url), "embedded"), err)
	}
	b.greet(b.conn)
	return nil
}

// greet notes a NATS server of another release than the one that is tested.
func (b *Bus) greet(c *nats.Conn) {
	v := c.ConnectedServerVersion()
	b.untested.Store(releaseOf(v) != releaseOf(server.VERSION))
	if b.untested.Load() {
		b.config.Logger.Warn("NATS server is of another release than trimtab is tested with", "server", v, "tested", server.VERSION)
	}
}

// releaseOf returns "2.15" of "2.15.1-beta.3".
func releaseOf(version string) string {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	return major + "." + minor
}

// makes lets one goroutine at a time create or delete a stream, a bucket or a consumer, until
// done is called: nats-server handles such requests concurrently, and has races. A request to an
// embedded server is not cancelled, since the server would keep the goroutines of what is half
// created; so ctx ends late.
func (b *Bus) makes(ctx context.Context) (_ context.Context, done func()) {
	b.making.Lock()
	if b.server == nil {
		return ctx, b.making.Unlock
	}
	ctx, ended := b.inTime(context.WithoutCancel(ctx))
	ctx, cancel := context.WithTimeout(ctx, makeWithin)
	return ctx, func() { cancel(); ended(); b.making.Unlock() }
}

// makeWithin bounds how long an embedded server may take to create something.
const makeWithin = 10 * time.Second

func (b *Bus) disconnect() {
	if b.conn != nil {
		b.conn.Close()
	}
	if b.server != nil {
		b.stopServer()
	}
	if b.leaf != nil {
		b.leaf.close()
		b.leaf = nil
	}
}

// URL returns where other processes reach this bus; empty when they cannot.
func (b *Bus) URL() string {
	switch {
	case b.server == nil:
		return b.config.URL
	case b.config.Listen == "":
		return ""
	}
	return b.server.ClientURL()
}

// Ready returns an error while the server is out of reach, or the embedded one
// cannot write its store.
func (b *Bus) Ready() error {
	if err := b.apart(); err != nil || b.server == nil {
		return err
	}
	if s := b.conn.Status(); s != nats.CONNECTED {
		return fmt.Errorf("bus is %s", s)
	}
	if why := b.server.log.storing(time.Now().Add(-unstoredFor)); why != nil {
		// A stream of nats-server that failed to write stays as it is.
		return fmt.Errorf("bus cannot write its store: %w; make room on its disk, then restart this process", why)
	}
	return nil
}

// unstoredFor is how long an error of the embedded server's store stays valid: every stage
// retries more often than that.
const unstoredFor = 15 * time.Second

// Damaged returns how many stores were moved aside and how many consumers started over since the
// bus was opened, because they were damaged.
func (b *Bus) Damaged() (stores, consumers uint64) {
	return b.damaged.stores.Load(), b.damaged.consumers.Load()
}

// Untested reports whether the NATS server that this process is connected to is of
// another release than trimtab is tested with. Of a leaf node it is the central
// server that it asked when it started.
func (b *Bus) Untested() bool { return b.untested.Load() }

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

// Close ends all subscriptions, sends what waits to be sent, and stops an
// embedded server. It returns nil.
func (b *Bus) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	stops := make([]func(), 0, len(b.stops))
	for _, stop := range b.stops {
		stops = append(stops, stop)
	}
	b.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
	b.near.close()
	if b.shed != nil {
		b.shed.close()
	}
	if b.conn.IsConnected() {
		// The server must have read what Publish handed over.
		_ = b.conn.FlushTimeout(time.Second)
	}
	if b.server != nil {
		b.making.Lock()
		defer b.making.Unlock()
	}
	b.disconnect()
	return nil
}

// keep registers stop for Close, and returns the function to hand out: its first call stops, the
// others wait for the first.
func (b *Bus) keep(stop func()) (func(), error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errClosed
	}
	b.nextID++
	id := b.nextID
	once := sync.OnceFunc(func() {
		stop()
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.stops, id)
	})
	b.stops[id] = once
	return once, nil
}

// reconnected wakes all that wait for an answer of the former server.
func (b *Bus) reconnected(c *nats.Conn) {
	b.config.Logger.Info("bus reconnected", "url", c.ConnectedUrlRedacted())
	b.greet(c)
	b.wake()
}

// wake makes all waiters give up on an answer that may never come.
func (b *Bus) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.again)
	b.again = make(chan struct{})
}

// untilReconnect returns a context that ends with ctx or at the next
// reconnection.
func (b *Bus) untilReconnect(ctx context.Context) (context.Context, context.CancelFunc) {
	b.mu.Lock()
	again := b.again
	b.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-again:
			cancel(errReconnected)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
