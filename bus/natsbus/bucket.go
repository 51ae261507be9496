package natsbus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
)

// bucket is a key-value store that is created again, empty, if the server lost it.
type bucket struct {
	store *store
	name  string

	mu sync.Mutex
	kv jetstream.KeyValue
}

// Bucket opens the named bucket, making it when it is absent. A name is 1 to
// 64 letters, digits, '-' and '_'.
func (b *Bus) Bucket(ctx context.Context, name string) (bus.Bucket, error) {
	if bus.EscapeKey(name) != name || len(name) > 64 {
		return nil, trimtab.Invalidf("bucket %.80q: want letters, digits, - and _", name)
	}
	k := &bucket{store: &b.store, name: name}
	ctx, done := b.inTime(ctx)
	defer done()
	if err := k.make(ctx); err != nil {
		return nil, b.ending(err)
	}
	return k, nil
}

func (k *bucket) make(ctx context.Context) error {
	info := StreamInfo{}
	for _, s := range k.store.streams {
		if s.Bucket && (s.Name == k.name || s.Name == others && info.Name == "") {
			info = s
		}
	}
	info.Name = k.name
	kv, err := k.store.makeBucket(ctx, info)
	if err != nil {
		return fmt.Errorf("make bucket %s: %w", k.name, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kv = kv
	return nil
}

// makeBucket opens a bucket, and creates it first if it is missing and this process creates
// buckets.
func (st *store) makeBucket(ctx context.Context, info StreamInfo) (jetstream.KeyValue, error) {
	if !st.makesStreams() {
		return st.js.KeyValue(ctx, info.Name)
	}
	ctx, done := st.makes(ctx)
	defer done()
	if st.config.alone() && info.MaxBytes > packedBytes {
		// The server stores it in blocks of 8 MiB, of which the newest stays in memory for some
		// seconds after a write. Its size is bounded by the number of keys and by Config.MaxStore.
		info.MaxBytes = -1
	}
	return st.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: info.Name, Description: info.Note, History: 1, MaxBytes: info.MaxBytes,
		Storage: jetstream.FileStorage, Replicas: st.config.Replicas,
	})
}

// try runs f. If the bucket was missing, it creates the bucket and runs f once more.
func (k *bucket) try(ctx context.Context, do string, f func(context.Context, jetstream.KeyValue) error) error {
	ctx, done := k.store.inTime(ctx)
	defer done()
	k.mu.Lock()
	kv := k.kv
	k.mu.Unlock()
	began := time.Now()
	err := k.store.unanswered(began, f(ctx, kv))
	if isMissing(err) {
		if err = k.make(ctx); err == nil {
			k.mu.Lock()
			kv = k.kv
			k.mu.Unlock()
			err = f(ctx, kv)
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrKeyDeleted):
		err = bus.ErrNotFound
	case errors.Is(err, jetstream.ErrKeyExists), errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		err = bus.ErrConflict
	case errors.Is(err, nats.ErrMaxPayload):
		err = fmt.Errorf("%w: %w", trimtab.ErrInvalid, err)
	}
	return k.store.ending(fmt.Errorf("%s in bucket %s: %w", do, k.name, err))
}

// Get returns the value and its revision.
func (k *bucket) Get(ctx context.Context, key string) (value []byte, revision uint64, err error) {
	err = k.try(ctx, "get "+key, func(ctx context.Context, kv jetstream.KeyValue) error {
		e, err := kv.Get(ctx, bus.EscapeKey(key))
		if err == nil {
			value, revision = e.Value(), e.Revision()
		}
		return err
	})
	return value, revision, err
}

// Put writes unconditionally.
func (k *bucket) Put(ctx context.Context, key string, value []byte) (revision uint64, err error) {
	err = k.try(ctx, "put "+key, func(ctx context.Context, kv jetstream.KeyValue) (err error) {
		revision, err = kv.Put(ctx, bus.EscapeKey(key), value)
		return err
	})
	return revision, err
}

// Update writes if the revision is still the given one.
func (k *bucket) Update(ctx context.Context, key string, value []byte, revision uint64) (now uint64, err error) {
	err = k.try(ctx, "update "+key, func(ctx context.Context, kv jetstream.KeyValue) (err error) {
		if revision == 0 {
			now, err = kv.Create(ctx, bus.EscapeKey(key), value)
		} else {
			now, err = kv.Update(ctx, bus.EscapeKey(key), value, revision)
		}
		return err
	})
	return now, err
}

// Delete removes the key.
func (k *bucket) Delete(ctx context.Context, key string) error {
	return k.try(ctx, "delete "+key, func(ctx context.Context, kv jetstream.KeyValue) error {
		return kv.Delete(ctx, bus.EscapeKey(key))
	})
}

// Keys lists the keys in order. It asks the stream for its subjects: a consumer, as the client
// library would create, could be made to send what a role wrote here to any subject.
func (k *bucket) Keys(ctx context.Context) (keys []string, err error) {
	err = k.try(ctx, "list keys", func(ctx context.Context, kv jetstream.KeyValue) error {
		keys = nil
		s, err := k.store.js.Stream(ctx, "KV_"+k.name)
		if err != nil {
			return err
		}
		prefix := "$KV." + k.name + "."
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(prefix+">"))
		if err != nil {
			return err
		}
		for subject := range info.State.Subjects {
			escaped := strings.TrimPrefix(subject, prefix)
			key, ok := bus.UnescapeKey(escaped)
			if !ok {
				continue
			}
			switch _, err := kv.Get(ctx, escaped); {
			case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrKeyDeleted): // a deletion marker
			case err != nil:
				return err
			default:
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		return nil
	})
	return keys, err
}
