package natsbus

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/internal/pause"
)

// store manages the streams and buckets of the table on the server.
type store struct {
	connection
	streams []StreamInfo
}

// storeAs sends m until its stream acknowledges it. All attempts have one message id, so that the
// stream stores m once. failed gets the error of each attempt, and nil on success. The returned
// error is bus.ErrInDoubt if an attempt got no answer.
func (st *store) storeAs(ctx context.Context, m *nats.Msg, id string, failed *atomic.Pointer[error]) (ack *jetstream.PubAck, err error) {
	ctx, cancel := context.WithTimeout(ctx, st.config.PublishTimeout)
	defer cancel()
	sent := false
	defer func() {
		if err != nil && sent {
			err = inDoubt{err}
		}
	}()
	var cause error // the last error other than that the time is over
	for attempt := 0; ; attempt++ {
		ack, err := st.storeOnce(ctx, m, id)
		if err == nil {
			failed.Store(nil)
			return ack, nil
		}
		sent = sent || !isRefusal(err)
		if cause == nil || err.Error() != context.DeadlineExceeded.Error() {
			cause = err
		}
		err = st.plain(cause)
		told := err // a copy, since err changes below
		failed.Store(&told)
		if ctx.Err() != nil || st.conn.IsClosed() || errors.Is(err, nats.ErrMaxPayload) {
			return nil, fmt.Errorf("store: %w", err)
		}
		if isMissing(err) && !errors.Is(err, errApart) {
			// A server that is still starting also answers as if it had no streams.
			err = errors.Join(err, st.makeStreams(ctx))
		}
		// Retry at once when the connection is back.
		again, done := st.untilReconnect(ctx)
		pause.For(again, min(20*time.Millisecond<<min(attempt, 8), time.Second))
		done()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
	}
}

// inDoubt is the error of a message that was sent and not answered.
type inDoubt struct{ error }

func (e inDoubt) Unwrap() error      { return e.error }
func (inDoubt) Is(target error) bool { return target == bus.ErrInDoubt }

// isRefusal reports whether an error means that a message was not sent, or not accepted.
func isRefusal(err error) bool {
	_, answered := errors.AsType[*jetstream.APIError](err)
	return answered || isMissing(err) || errors.Is(err, errAway) || errors.Is(err, nats.ErrMaxPayload)
}

// serverTime returns the clock of the server that leads a stream; it was read after the call
// began. Zero: the server does not report it.
func (st *store) serverTime(ctx context.Context, stream string) (time.Time, error) {
	s, err := st.js.Stream(ctx, stream)
	if err != nil {
		return time.Time{}, err
	}
	return s.CachedInfo().TimeStamp, nil
}

// storeOnce makes one attempt, with a copy of m: PublishMsg changes the message that it gets.
func (st *store) storeOnce(ctx context.Context, m *nats.Msg, id string) (*jetstream.PubAck, error) {
	if !st.conn.IsConnected() {
		// The client would keep it and send it after a reconnection, also when
		// Publish has long returned an error.
		return nil, errAway
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	one := &nats.Msg{Subject: m.Subject, Data: m.Data, Header: nats.Header{nats.MsgIdHdr: {id}}}
	for _, name := range []string{headerReason, headerUntil} {
		if text := m.Header.Get(name); text != "" {
			one.Header.Set(name, text)
		}
	}
	if st.config.alone() && one.Header.Get(headerReason) == "" { // dead letters are for people to look at
		pack(one)
	}
	ack, err := st.js.PublishMsg(ctx, one, jetstream.WithRetryAttempts(0))
	return ack, st.unanswered(began, err)
}

// putAside stores a dead letter. Its message id makes a repeated attempt harmless.
func (st *store) putAside(ctx context.Context, m *nats.Msg, k trimtab.Kind, reason error) error {
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	data, err := unpack(m.Header, m.Data)
	if err != nil {
		data = m.Data // compressed, as received
	}
	aside := asideMsg(unreadableSubject+string(k), data, headerText(reason))
	_, err = st.storeAs(ctx, aside, fmt.Sprintf("unreadable %s %d %d", meta.Stream, meta.Sequence.Stream, meta.Timestamp.UnixNano()), new(atomic.Pointer[error]))
	return err
}

// asideMsg returns a message for the stream UNREADABLE.
func asideMsg(subject string, data []byte, reason string) *nats.Msg {
	return &nats.Msg{Subject: subject, Data: data, Header: nats.Header{headerReason: {reason}}}
}

// isMissing reports whether an error means that a stream, bucket or consumer is missing.
func isMissing(err error) bool {
	return errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, jetstream.ErrStreamNotFound) ||
		errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrConsumerDeleted)
}
