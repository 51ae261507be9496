package natsbus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/pause"
)

// dedupeWindow is how long the server drops messages with an id that it has stored. It covers the
// longest sensible PublishTimeout.
const dedupeWindow = 2 * time.Minute

// makeStreams creates missing streams, and sets the limits of existing ones to those of the
// table. A role without the right to do so only checks that the streams it uses exist.
func (st *store) makeStreams(ctx context.Context) error {
	for _, s := range st.streams {
		var err error
		switch {
		case s.Name == "":
		case !st.makesStreams() && s.Name == BucketThresholds: // an agent does its work without
		case !st.makesStreams():
			err = st.findStream(ctx, s)
		case s.Bucket && st.config.Role != "" && s.Name != others:
			_, err = st.makeBucket(ctx, s)
		case !s.Bucket:
			err = st.makeStream(ctx, s)
		}
		if err != nil {
			return fmt.Errorf("make stream %s: %w", s.Name, err)
		}
	}
	return nil
}

// makesStreams reports whether this process creates streams and buckets.
func (st *store) makesStreams() bool { return st.config.Role == "" || st.config.Role == Planner }

// findStream returns an error when a stream is missing that the role uses.
func (st *store) findStream(ctx context.Context, s StreamInfo) error {
	if !slices.Contains(s.Publish, st.config.Role) && !slices.Contains(s.Read, st.config.Role) {
		return nil
	}
	_, err := st.js.Stream(ctx, stream(s))
	return err
}

// awaitStreams makes the streams, or waits for the planner to make them.
func (st *store) awaitStreams(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		err := st.makeStreams(ctx)
		if err == nil || st.makesStreams() || !isMissing(err) {
			return err
		}
		if attempt == maxWaits {
			return fmt.Errorf("no planner has made the streams yet: %w", err)
		}
		if attempt%10 == 0 {
			st.config.Logger.Warn("bus waits for a planner to make its streams", "err", err)
		}
		if pause.For(ctx, time.Second); ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
	}
}

// maxWaits is how often a process looks for streams, once a second, before it
// gives up: systemd then starts it again.
const maxWaits = 60

// permitted asks the server what this user may do, and returns an error that
// names every subject that its role needs and does not have.
func (st *store) permitted(ctx context.Context) error {
	if st.config.Role == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	m, err := st.conn.RequestWithContext(ctx, userInfo, nil)
	if why := st.conn.LastError(); err != nil && errors.Is(why, nats.ErrPermissionViolation) {
		// The answer does not even arrive: the inbox is that of another role.
		return fmt.Errorf("%w: this NATS user may not do what the role %s needs: %w", trimtab.ErrRefused, st.config.Role, why)
	}
	if err != nil {
		st.config.Logger.Warn("bus does not tell what this user may do: a permission that is missing shows later", "subject", userInfo, "err", err)
		return nil
	}
	type list struct{ Allow, Deny []string }
	var info struct {
		Data struct {
			User        string
			Permissions *struct {
				Publish, Subscribe list
				Responses          *struct{}
			}
		}
	}
	if err := json.Unmarshal(m.Data, &info); err != nil {
		return fmt.Errorf("read %s: %w", userInfo, err)
	}
	has := info.Data.Permissions
	if has == nil {
		st.config.Logger.Warn("bus lets this user do everything: see trimtab init cluster", "user", info.Data.User, "role", st.config.Role)
		return nil
	}
	// No list is no limit.
	all := func(allow []string) []string {
		if len(allow) == 0 {
			return []string{">"}
		}
		return allow
	}
	granted := Permissions{Publish: all(has.Publish.Allow), Deny: has.Publish.Deny, Subscribe: all(has.Subscribe.Allow),
		Answers: has.Responses != nil || len(has.Publish.Allow) == 0}
	needs := PermissionsOf(st.config.Role, Scope{Host: st.config.Host, Pool: st.config.Pool, Secret: st.secret})
	if lacks := needs.missing(&granted); len(lacks) > 0 {
		return fmt.Errorf("%w: NATS user %s may not do what the role %s needs: %s", trimtab.ErrRefused, info.Data.User, st.config.Role, strings.Join(lacks, "; "))
	}
	return nil
}

func (st *store) makeStream(ctx context.Context, s StreamInfo) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, done := st.makes(ctx)
	defer done()
	_, err := st.js.CreateOrUpdateStream(ctx, st.streamConfig(s))
	return err
}

func (st *store) streamConfig(s StreamInfo) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: s.Name, Description: s.Note, Subjects: []string{s.Subjects},
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, Storage: jetstream.FileStorage,
		MaxBytes: s.MaxBytes, MaxAge: s.MaxAge, MaxMsgs: -1, MaxConsumers: -1,
		MaxMsgsPerSubject: or(s.PerSubject, -1), MaxMsgSize: MaxPayload,
		Replicas: st.config.Replicas, Duplicates: dedupeWindow, AllowDirect: true,
	}
}

// mayBeCorrupt reports whether an error of an embedded server at its start may mean that
// its store is damaged. Reached limits, a full disk and a timeout do not.
func mayBeCorrupt(err error) bool {
	const insufficientStorage = 10047
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == insufficientStorage {
		return false
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) &&
		!strings.Contains(err.Error(), "no space left")
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
