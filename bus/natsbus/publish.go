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
	"github.com/trimtab/trimtab/topic"
)

const (
	// headerOrigin holds "source incarnation sequence place", with the source escaped. place is
	// this message's number in the sequence of messages from this publisher on this subject.
	headerOrigin = "Trimtab-Origin"
	// headerError holds the handler's error in the answer to a request, headerErrorKind which of
	// the errorKinds it is.
	headerError     = "Trimtab-Error"
	headerErrorKind = "Trimtab-Error-Kind"
	// headerReason says why a value became a dead letter.
	headerReason = "Trimtab-Reason"
	// headerUntil is until when a command may be stored, by the clock of the
	// server that stores it, in nanoseconds since 1970.
	headerUntil = "Trimtab-Until"
)

var (
	errClosed = errors.New("bus is closed")
	errAway   = errors.New("bus is not connected")
)

// Publish sends v; see [bus.Bus].
func (b *Bus) Publish(ctx context.Context, v trimtab.Value) error {
	ctx, done := b.inTime(ctx)
	defer done()
	return b.ending(b.publish(ctx, v))
}

func (b *Bus) publish(ctx context.Context, v trimtab.Value) error {
	k := b.kinds[v.Kind()]
	if k == nil || k.Delivery == topic.Local {
		return trimtab.Invalidf("publish %.40q: this kind does not travel", v.Kind())
	}
	origin := trimtab.Origin{Source: b.config.Source, Incarnation: b.incarnation, Sequence: b.sequence.Add(1)}
	if b.near.carries(k) {
		if err := b.near.publish(ctx, k, v, origin); err != nil {
			return fmt.Errorf("publish %s %s: %w", v.Kind(), v.Key(), err)
		}
		k.published.Add(1)
		return nil
	}
	if b.near != nil && k.Delivery == topic.Answered {
		if err := b.near.ask(ctx, k, v, origin); err != nil {
			return fmt.Errorf("publish %s %s: %w", v.Kind(), v.Key(), err)
		}
		k.published.Add(1)
		return nil
	}
	data, err := codec.Encode(v, origin)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	m := &nats.Msg{Subject: bus.Subject(v.Kind(), v.Key()), Data: data}
	switch k.Delivery {
	case topic.Shed:
		err = b.shed.send(v.Kind(), bus.EscapeKey(v.Key()), data, origin)
	case topic.Answered:
		m.Header = nats.Header{headerOrigin: {formatOrigin(origin, 0)}}
		err = b.ask(ctx, m)
	default:
		if k.Kind == trimtab.KindCommand {
			err = b.storeNow(ctx, k, m, origin)
		} else {
			id := formatOrigin(origin, 0)
			b.reads.publishes(id, sent{value: v, origin: origin, data: data})
			_, err = b.storeAs(ctx, m, id, &k.unstored)
		}
	}
	if err != nil {
		return fmt.Errorf("publish %s %s: %w", v.Kind(), v.Key(), err)
	}
	k.published.Add(1)
	return nil
}

// ask sends a request and returns the handler's error.
func (b *Bus) ask(ctx context.Context, m *nats.Msg) error {
	ctx, cancel := context.WithTimeout(ctx, b.config.AnswerTimeout)
	defer cancel()
	reply, err := b.conn.RequestMsgWithContext(ctx, m)
	switch {
	case err == nil:
		return answerError(reply)
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", bus.ErrNoConsumer, err)
	}
	return err
}

// errorKinds returns the errors that can be recognised on the other side of the bus.
func errorKinds() map[string]error {
	return map[string]error{
		"invalid": trimtab.ErrInvalid, "unsupported": trimtab.ErrUnsupported, "infeasible": trimtab.ErrInfeasible,
		"stale": trimtab.ErrStale, "refused": trimtab.ErrRefused, "no consumer": bus.ErrNoConsumer,
	}
}

// answerError reads the error out of an answer; nil when it was handled.
func answerError(reply *nats.Msg) error {
	if len(reply.Header) == 0 {
		return nil
	}
	text := reply.Header.Get(headerError)
	if text == "" {
		return nil
	}
	if known := errorKinds()[reply.Header.Get(headerErrorKind)]; known != nil {
		return fmt.Errorf("%s: %w", text, known)
	}
	return errors.New(text)
}

const (
	// commandWithin is how long a command may take to be stored: a person waits.
	commandWithin = time.Second
	// settledWithin is how long the sender of a command without a confirmation asks the stream whether
	// it was stored.
	settledWithin = time.Second
)

// storeNow stores a command now or never. A sender that is told of a failure does something else,
// so the command must not be carried out when the server comes back. So nothing is sent without a
// connection, and the message says until when it may be stored, in case a server reads it late.
// That time is by the server's own clock, which is asked first: the clocks of hosts differ. If
// the answer is late, the stream is asked when it stored the command, as its readers will judge
// it. If the server does not answer that either, nobody knows whether it stored the command:
// bus.ErrInDoubt.
func (b *Bus) storeNow(ctx context.Context, k *kind, m *nats.Msg, o trimtab.Origin) error {
	soon, cancel := context.WithTimeout(ctx, commandWithin)
	defer cancel()
	deadline, _ := soon.Deadline()
	if !b.conn.IsConnected() {
		return fmt.Errorf("store: %w", errAway)
	}
	asked := time.Now()
	now, err := b.serverTime(soon, k.stream.Name)
	if isMissing(err) {
		if err = b.makeStreams(soon); err == nil {
			asked = time.Now()
			now, err = b.serverTime(soon, k.stream.Name)
		}
	}
	if err != nil {
		return fmt.Errorf("ask server that stores: %w", err)
	}
	id, answer := formatOrigin(o, 0), deadline
	if !now.IsZero() { // servers before 2.10 do not report it
		var until time.Time
		until, answer = storeBy(now, asked, time.Now(), deadline)
		m.Header = nats.Header{headerUntil: {strconv.FormatInt(until.UnixNano(), 10)}}
	}
	soon, cancelAnswer := context.WithDeadline(soon, answer)
	defer cancelAnswer()
	ack, err := b.storeAs(soon, m, id, &k.unstored)
	switch {
	case err == nil && !time.Now().After(answer):
		return nil
	case err != nil && !errors.Is(err, bus.ErrInDoubt):
		return err
	}
	return b.settle(ctx, k, m, id, ack)
}

// settle finds out what happened to a command whose answer is late or missing. It sends the
// command again under its id: the stream either says where the first copy is, or stores this one,
// too late.
func (b *Bus) settle(ctx context.Context, k *kind, m *nats.Msg, id string, ack *jetstream.PubAck) (err error) {
	ctx, cancel := context.WithTimeout(ctx, settledWithin)
	defer cancel()
	if ack == nil {
		ack, err = b.storeAs(ctx, m, id, &k.unstored)
	}
	var stream jetstream.Stream
	if err == nil {
		stream, err = b.js.Stream(ctx, k.stream.Name)
	}
	var stored *jetstream.RawStreamMsg
	if err == nil {
		stored, err = stream.GetMsg(ctx, ack.Sequence)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", bus.ErrInDoubt, err)
	case tooLate(stored.Header, stored.Time):
		return fmt.Errorf("store: %w", context.DeadlineExceeded)
	}
	return nil
}

// storeBy returns until when a command may be stored, by the server's clock, and until when the
// confirmation may arrive, by this process's clock. The server's clock showed now at some time
// between asked and told. The first bound assumes told, so that nothing is stored after deadline:
//
//	until = now + (deadline - told)
//
// The second assumes asked, so that a command confirmed in time was stored in time, and its
// readers do not drop it:
//
//	answer = asked + (deadline - told)
func storeBy(now, asked, told, deadline time.Time) (until, answer time.Time) {
	left := deadline.Sub(told)
	return now.Add(left), asked.Add(left)
}

// tooLate reports whether a message was stored after its sender had given up.
func tooLate(h nats.Header, stored time.Time) bool {
	until, err := strconv.ParseInt(h.Get(headerUntil), 10, 64)
	return err == nil && stored.UnixNano() > until
}

func formatOrigin(o trimtab.Origin, place uint64) string {
	b := make([]byte, 0, len(o.Source)+64)
	b = append(b, bus.EscapeKey(o.Source)...)
	for _, n := range []uint64{o.Incarnation, o.Sequence, place} {
		b = strconv.AppendUint(append(b, ' '), n, 10)
	}
	return string(b)
}

// parseOrigin reads what formatOrigin prints; ok is false for anything else.
func parseOrigin(s string) (o trimtab.Origin, place uint64, ok bool) {
	if len(s) > 1024 {
		return o, 0, false
	}
	parts := strings.Split(s, " ")
	if len(parts) != 4 {
		return o, 0, false
	}
	if o.Source, ok = bus.UnescapeKey(parts[0]); !ok {
		return o, 0, false
	}
	for i, p := range []*uint64{&o.Incarnation, &o.Sequence, &place} {
		n, err := strconv.ParseUint(parts[i+1], 10, 64)
		if err != nil {
			return o, 0, false
		}
		*p = n
	}
	return o, place, true
}
