package natsbus

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/trimtab/trimtab"
)

// dedupeWindow is how long a repeated message id is stored once. It covers
// the longest PublishTimeout that makes sense.
const dedupeWindow = 2 * time.Minute

// makeStreams makes the streams that are missing and brings the limits of
// those that are there up to the table.
func (b *Bus) makeStreams(ctx context.Context) error {
	for _, s := range b.streams {
		if s.Bucket || s.Name == "" {
			continue
		}
		if err := b.makeStream(ctx, s); err != nil {
			return fmt.Errorf("make stream %s: %w", s.Name, err)
		}
	}
	return nil
}

func (b *Bus) makeStream(ctx context.Context, s StreamInfo) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, done := b.makes(ctx)
	defer done()
	_, err := b.js.CreateOrUpdateStream(ctx, b.streamConfig(s))
	return err
}

func (b *Bus) streamConfig(s StreamInfo) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: s.Name, Description: s.Note, Subjects: []string{s.Subjects},
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, Storage: jetstream.FileStorage,
		MaxBytes: s.MaxBytes, MaxAge: s.MaxAge, MaxMsgs: -1, MaxConsumers: -1,
		MaxMsgsPerSubject: or(s.PerSubject, -1), MaxMsgSize: maxPayload,
		Replicas: b.config.Replicas, Duplicates: dedupeWindow, AllowDirect: true,
	}
}

// mayBeCorrupt tells whether an error of a new embedded server speaks against
// its store rather than against the limits, the disk or the patience.
func mayBeCorrupt(err error) bool {
	const insufficientStorage = 10047
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == insufficientStorage {
		return false
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) &&
		!strings.Contains(err.Error(), "no space left")
}

// putAside stores a message that nobody can read or handle where a person can
// look at it. id makes a repeated attempt harmless.
func (b *Bus) putAside(ctx context.Context, m *nats.Msg, k trimtab.Kind, reason error) error {
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	data, err := unpack(m.Header, m.Data)
	if err != nil {
		data = m.Data // as it came
	}
	aside := asideMsg(unreadableSubject+string(k), data, headerText(reason))
	_, err = b.storeAs(ctx, aside, fmt.Sprintf("unreadable %s %d %d", meta.Stream, meta.Sequence.Stream, meta.Timestamp.UnixNano()), new(atomic.Pointer[error]))
	return err
}

// redact removes the password from a URL, or from a list of them.
func redact(list string) string {
	urls := strings.Split(list, ",")
	for i, s := range urls {
		if u, err := url.Parse(strings.TrimSpace(s)); err == nil {
			if _, ok := u.User.Password(); u.User != nil && !ok {
				u.User = url.User("xxxxx") // a token
			}
			urls[i] = u.Redacted()
		}
	}
	return strings.Join(urls, ",")
}
