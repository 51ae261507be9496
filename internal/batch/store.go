package batch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/planner/jobs"
)

// recordStore keeps the records of one pool's job manager in a bucket. Each write is a
// compare-and-swap against what this manager last read or wrote, so that a manager with an old
// epoch cannot write any more.
type recordStore struct {
	bucket    bus.Bucket
	prefix    string
	revisions map[string]uint64
}

// deleted marks a record between the swap and its removal, since removal alone compares nothing.
const deleted = "null"

// read returns all records.
func (s *recordStore) read(ctx context.Context) (all []jobs.Record, err error) {
	keys, err := s.bucket.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("list records: %w", err)
	}
	for _, key := range keys {
		name, ours := strings.CutPrefix(key, s.prefix)
		if !ours || strings.Contains(name, "/") {
			continue
		}
		value, revision, err := s.bucket.Get(ctx, key)
		if errors.Is(err, bus.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read record %s: %w", name, err)
		}
		s.revisions[key] = revision
		if string(value) != deleted {
			all = append(all, jobs.Record{Key: name, Value: value})
		}
	}
	return all, nil
}

// write stores the records one after the other, in order, and ends at the first error.
func (s *recordStore) write(ctx context.Context, all []jobs.Record) error {
	for _, r := range all {
		if err := s.writeOne(ctx, r); err != nil {
			return fmt.Errorf("write record %s: %w", r.Key, err)
		}
	}
	return nil
}

func (s *recordStore) writeOne(ctx context.Context, r jobs.Record) error {
	ctx, cancel := context.WithTimeout(ctx, batchStore)
	defer cancel()
	key, value := s.prefix+r.Key, r.Value
	if value == nil {
		value = []byte(deleted)
	}
	revision, err := s.bucket.Update(ctx, key, value, s.revisions[key])
	if err != nil {
		return err
	}
	s.revisions[key] = revision
	if r.Value == nil {
		if err := s.bucket.Delete(ctx, key); err != nil {
			return err
		}
		delete(s.revisions, key)
	}
	return nil
}
