package natsbus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/internal/pause"
	"github.com/trimtab/trimtab/topic"
)

const (
	// orphaned is when the server forgets the consumer of a nameless subscriber that disappeared.
	orphaned = time.Minute
	maxPause = 5 * time.Second
	// subscribeTimeout is how long a new subscriber waits for a server that does not answer.
	subscribeTimeout = time.Minute
)

// storedSub is a subscription to a stream. Its consumer has one message unacknowledged at a time,
// which keeps the order while a value is retried.
type storedSub struct {
	bus  *Bus
	kind *kind
	name string // of the consumer
	bus.Subscription

	// last is the newest message that this member has handled. An older one is a repeated
	// delivery, whose acknowledgement was lost with a server, and is skipped.
	last struct {
		sequence uint64
		stored   time.Time
	}
	// troubled is true if the last call of Trouble had an error. unreachable is the last
	// error logged about a consumer that cannot be reached.
	troubled    bool
	unreachable string
}

// label returns the consumer's name for people, without the secret at the end of an agent's.
func (d *storedSub) label() string {
	if d.bus.secret == "" {
		return d.name
	}
	return strings.Replace(d.name, "--"+d.bus.secret, "", 1)
}

// report calls Trouble with the reason while nothing can be delivered, and with nil when messages
// arrive again.
func (d *storedSub) report(err error) {
	if d.Trouble == nil || err == nil && !d.troubled {
		return
	}
	d.troubled = err != nil
	d.Trouble(err)
}

func (b *Bus) subscribeStored(ctx context.Context, k *kind, s bus.Subscription) (func(), error) {
	d := &storedSub{bus: b, kind: k, Subscription: s}
	if s.Consumer == "" {
		d.name = "one-" + nats.NewInbox()[len("_INBOX."):]
	} else {
		d.name = bus.EscapeKey(s.Consumer)
		if s.Key != "" {
			d.name += "--" + bus.EscapeKey(s.Key)
		}
		if b.secret != "" {
			d.name += "--" + b.secret
		}
	}
	leave := func() {}
	if b.near.carries(k) {
		leave = b.near.join(ctx, k)
	}
	p, err := d.openPatiently(ctx)
	if err != nil {
		leave()
		return nil, err
	}
	run, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { d.run(run, p) })
	forget := b.subscriptions.watch(d)
	return func() { forget(); cancel(); done.Wait(); leave() }, nil
}

// openPatiently opens the pull, and retries while the server answers too late: a busy server, or
// one that has just started, is no reason for a stage to end. Meanwhile it calls Trouble.
func (d *storedSub) openPatiently(ctx context.Context) (*pull, error) {
	for began := time.Now(); ; {
		p, err := d.open(ctx, time.Time{})
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > subscribeTimeout {
			return p, err
		}
		d.report(d.bus.plain(err))
	}
}

// open makes the consumer if it is missing, and requests its messages. For a subscriber
// without a name, resumed is the time from which on messages are wanted again; zero at the
// first start.
func (d *storedSub) open(ctx context.Context, resumed time.Time) (*pull, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := d.makeConsumer(ctx, resumed)
	if isMissing(err) {
		if err = d.bus.makeStreams(ctx); err == nil {
			err = d.makeConsumer(ctx, resumed)
		}
	}
	if isBrokenConsumer(err) {
		d.bus.damaged.consumers.Add(1)
		d.bus.config.Logger.Error("bus consumer's state is damaged: it starts over", "kind", d.Kind, "consumer", d.label(), "err", err)
		err = d.replaceConsumer(ctx, resumed)
	}
	if err != nil {
		return nil, err
	}
	return d.bus.openPull(d.kind.stream.Name, d.name)
}

// replaceConsumer creates a consumer again whose files are damaged, so that the server can
// neither run nor change it. The new one delivers the whole stream again; handlers recognise
// repeated values by epoch and sequence. On an external server, whose files cannot be removed, a
// consumer with another name replaces it; all members of a group choose the same name.
func (d *storedSub) replaceConsumer(ctx context.Context, resumed time.Time) error {
	// This deletes the consumer if it runs. If it does not, the server does not know it,
	// and the error says nothing.
	_ = d.bus.js.DeleteConsumer(ctx, d.kind.stream.Name, d.name)
	if d.bus.server != nil {
		if err := d.bus.server.forgetConsumer(d.kind.stream.Name, d.name); err != nil {
			return err
		}
	}
	err := d.makeConsumer(ctx, resumed)
	for n := 2; isBrokenConsumer(err) && n <= maxReplaced; n++ {
		broken := d.label()
		d.name, _, _ = strings.Cut(d.name, replaced)
		d.name += replaced + strconv.Itoa(n)
		d.bus.config.Logger.Error("bus consumer is damaged on the NATS server: another takes its place", "kind", d.Kind, "consumer", broken, "other", d.name, "err", err)
		err = d.makeConsumer(ctx, resumed)
	}
	return err
}

const (
	// replaced marks the names of consumers that replace another. No escaped key contains
	// it.
	replaced = "--again-"
	// maxReplaced bounds how many are tried.
	maxReplaced = 8
)

func (d *storedSub) makeConsumer(ctx context.Context, resumed time.Time) error {
	ctx, done := d.bus.makes(ctx)
	defer done()
	c := jetstream.ConsumerConfig{
		Name: d.name, FilterSubject: filter(d.Subscription), AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: d.bus.config.AckWait, MaxDeliver: -1, MaxAckPending: 1,
		DeliverPolicy: jetstream.DeliverAllPolicy, Replicas: d.bus.config.Replicas,
	}
	if d.Consumer != "" {
		c.Durable = d.name
		if d.MaxAge > 0 {
			from, err := d.notTooOld(ctx)
			if err != nil {
				return err
			}
			c.DeliverPolicy, c.OptStartTime, c.MemoryStorage = jetstream.DeliverByStartTimePolicy, &from, d.brief()
		}
		// An existing consumer is updated as well: its settings may be damaged in the
		// server's store.
		_, err := d.bus.js.CreateOrUpdateConsumer(ctx, d.kind.stream.Name, c)
		return err
	}
	if !resumed.IsZero() {
		if _, err := d.bus.js.Consumer(ctx, d.kind.stream.Name, d.name); err == nil {
			return nil
		}
	}
	c.InactiveThreshold = orphaned
	// The consumer ends with its subscriber, so its position need not be written to a file.
	// After a restart of the server it is made again.
	c.MemoryStorage = true
	switch {
	case d.kind.Delivery == topic.Latest || d.History && resumed.IsZero():
	case resumed.IsZero():
		c.DeliverPolicy = jetstream.DeliverNewPolicy
	default:
		// By time: a store that was rolled back uses sequence numbers twice.
		c.DeliverPolicy, c.OptStartTime = jetstream.DeliverByStartTimePolicy, &resumed
	}
	_, err := d.bus.js.CreateConsumer(ctx, d.kind.stream.Name, c)
	return err
}

// brief reports whether the server keeps the position of a group only in memory: if no other
// process can reach the bus, the group begins anew with this one. Otherwise the server writes a
// file twice for each value.
func (d *storedSub) brief() bool { return d.MaxAge > 0 && d.bus.config.alone() }

// notTooOld returns the start time for the consumer of a group with MaxAge. An existing consumer
// keeps its position if nothing after it is too old; otherwise a new one replaces it, since the
// old one would deliver every single value. Times are by the server's clock.
func (d *storedSub) notTooOld(ctx context.Context) (from time.Time, err error) {
	s, err := d.bus.js.Stream(ctx, d.kind.stream.Name)
	if err != nil {
		return from, err
	}
	if from = s.CachedInfo().TimeStamp; from.IsZero() { // servers before 2.10
		from = time.Now()
	}
	from = from.Add(-d.MaxAge)
	if began := time.UnixMicro(int64(d.bus.incarnation)); d.brief() && from.Before(began) {
		from = began
	}
	c, err := d.bus.js.Consumer(ctx, d.kind.stream.Name, d.name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return from, nil
	}
	if err != nil {
		return from, err
	}
	info := c.CachedInfo()
	if info.Config.MemoryStorage != d.brief() { // of an earlier release, or others could reach the bus then
		return from, d.bus.js.DeleteConsumer(ctx, d.kind.stream.Name, d.name)
	}
	first, err := s.GetMsg(ctx, info.AckFloor.Stream+1, jetstream.WithGetMsgSubject(filter(d.Subscription)))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && !first.Time.Before(from):
		if start := info.Config.OptStartTime; start != nil {
			return *start, nil
		}
		return from, nil
	case err != nil:
		return from, err
	}
	d.bus.config.Logger.Info("bus passes over what is too old", "kind", d.Kind, "consumer", d.label(), "oldest", first.Time, "from", from)
	return from, d.bus.js.DeleteConsumer(ctx, d.kind.stream.Name, d.name)
}

// run handles messages until ctx ends, over losses of server and consumer.
func (d *storedSub) run(ctx context.Context, p *pull) {
	for attempt := 0; ctx.Err() == nil; attempt++ {
		if p != nil {
			d.consume(ctx, p)
			p, attempt = nil, 0
			// A pause, in case the server refuses every time at once.
			pause.For(ctx, 20*time.Millisecond)
			continue
		}
		var err error
		if p, err = d.open(ctx, d.resume()); err != nil && ctx.Err() == nil {
			d.unreached(err)
			pause.For(ctx, min(50*time.Millisecond<<min(attempt, 6), maxPause))
		}
	}
	if p != nil {
		p.close(d.nak)
	}
	if d.Consumer == "" && d.bus.conn.IsConnected() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		ctx, done := d.bus.makes(ctx)
		defer done()
		// If the deletion does not arrive, the server deletes the consumer when it is inactive.
		_ = d.bus.js.DeleteConsumer(ctx, d.kind.stream.Name, d.name)
	}
}

// resume returns the time from which a nameless subscriber needs its messages again: that of its
// last message, but never later than now, in case a clock was set back.
func (d *storedSub) resume() time.Time {
	now := time.Now()
	if d.last.stored.IsZero() || d.last.stored.After(now) {
		return now.Add(-orphaned)
	}
	return d.last.stored
}

// consume handles messages until ctx ends or the pull request does.
func (d *storedSub) consume(ctx context.Context, p *pull) {
	waiting, cancel := d.bus.untilReconnect(ctx)
	defer cancel()
	p.answers = func() { d.unreachable = ""; d.report(nil) }
	for {
		m, err := p.next(waiting)
		if err != nil {
			if ctx.Err() == nil {
				d.report(d.bus.plain(err))
				d.bus.config.Logger.Debug("bus consumer asks anew", "kind", d.Kind, "consumer", d.label(), "err", err)
			}
			p.close(d.nak)
			return
		}
		if ctx.Err() != nil {
			d.nak(m)
			continue
		}
		d.handle(ctx, p, m)
	}
}

// handle delivers one message and acknowledges it, or says when to try again.
func (d *storedSub) handle(ctx context.Context, p *pull, m *nats.Msg) {
	meta, err := m.Metadata()
	if err != nil {
		// Not a message of a stream; only a faulty server sends this.
		return
	}
	if meta.Sequence.Stream <= d.last.sequence && !meta.Timestamp.After(d.last.stored) {
		d.ackOn(ctx, p, m)
		return
	}
	if tooLate(m.Header, meta.Timestamp) {
		d.bus.config.Logger.Warn("bus value was stored after its sender was told that it failed: ignored", "kind", d.Kind, "subject", m.Subject, "stored", meta.Timestamp)
		d.done(meta)
		d.ackOn(ctx, p, m)
		return
	}
	if meta.NumDelivered > 1 {
		d.kind.again.Add(1)
	}
	v, origin, err := d.bus.reads.read(d.kind, m, meta)
	if err != nil {
		d.kind.unreadable.Add(1)
		d.settle(ctx, m, meta, err)
		return
	}
	if meta.NumDelivered > uint64(d.bus.config.MaxDeliver) {
		// It was delivered several times without an answer: it may have crashed its handlers.
		d.settle(ctx, m, meta, fmt.Errorf("delivered %d times: %w", meta.NumDelivered-1, trimtab.ErrInvalid))
		return
	}
	alive := d.keepAlive(m)
	err = d.Handle(ctx, bus.Delivery{Value: v, Origin: origin, Stored: meta.Timestamp, Again: int(meta.NumDelivered) - 1})
	alive()
	if err == nil {
		d.kind.delivered.Add(1)
		d.done(meta)
		d.ackOn(ctx, p, m)
		return
	}
	if ctx.Err() != nil {
		d.nak(m)
		return
	}
	d.settle(ctx, m, meta, err)
}

// settle decides what happens to a message that could not be read or handled: it becomes a dead
// letter if no other try can help, else it is tried again later.
func (d *storedSub) settle(ctx context.Context, m *nats.Msg, meta *nats.MsgMetadata, cause error) {
	n := meta.NumDelivered
	if errors.Is(cause, trimtab.ErrInvalid) || n >= uint64(d.bus.config.MaxDeliver) {
		err := d.bus.putAside(ctx, m, d.Kind, cause)
		if err == nil {
			d.bus.config.Logger.Warn("bus value dead-lettered", "kind", d.Kind, "consumer", d.label(), "deliveries", n, "err", cause)
			d.done(meta)
			d.term(m)
			return
		}
		cause = errors.Join(cause, err)
	}
	d.bus.config.Logger.Debug("bus value not handled, later again", "kind", d.Kind, "consumer", d.label(), "deliveries", n, "err", cause)
	d.nakLater(m, min(d.bus.config.Pause<<min(n-1, 10), maxPause))
}

// done records that everything up to meta was handled and need not be delivered again.
func (d *storedSub) done(meta *nats.MsgMetadata) {
	d.last.sequence, d.last.stored = meta.Sequence.Stream, meta.Timestamp
}

// keepAlive tells the server that the handler still runs, until the returned
// function is called.
func (d *storedSub) keepAlive(m *nats.Msg) (stop func()) {
	every := d.bus.config.AckWait / 3
	var mu sync.Mutex
	var t *time.Timer
	stopped := false
	ping := func() {
		mu.Lock()
		defer mu.Unlock()
		if !stopped {
			d.inProgress(m)
			t.Reset(every)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	t = time.AfterFunc(every, ping)
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		t.Stop()
	}
}
