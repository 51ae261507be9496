package bustest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
)

// memoryBucket is a bucket of a [Memory].
type memoryBucket struct {
	mu       sync.Mutex
	revision uint64
	entries  map[string]entry
}

type entry struct {
	value    []byte
	revision uint64
}

// Bucket opens the named bucket, making it when it is absent.
func (m *Memory) Bucket(_ context.Context, name string) (bus.Bucket, error) {
	if bus.EscapeKey(name) != name || len(name) > 64 {
		return nil, trimtab.Invalidf("bucket %.80q: want letters, digits, - and _", name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.buckets[name] == nil {
		m.buckets[name] = &memoryBucket{entries: map[string]entry{}}
	}
	return m.buckets[name], nil
}

// Wipe empties all buckets and stored kinds, as a lost store would.
func (m *Memory) Wipe() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.buckets {
		b.mu.Lock()
		b.entries = map[string]entry{}
		b.mu.Unlock()
	}
	for _, l := range m.stored {
		l.first += uint64(len(l.entries))
		l.entries = nil
	}
}

func (b *memoryBucket) Get(_ context.Context, key string) ([]byte, uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.entries[key]
	if !ok {
		return nil, 0, fmt.Errorf("get %s: %w", key, bus.ErrNotFound)
	}
	return slices.Clone(e.value), e.revision, nil
}

func (b *memoryBucket) Put(_ context.Context, key string, value []byte) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.put(key, value), nil
}

func (b *memoryBucket) put(key string, value []byte) uint64 {
	b.revision++
	b.entries[key] = entry{slices.Clone(value), b.revision}
	return b.revision
}

func (b *memoryBucket) Update(_ context.Context, key string, value []byte, revision uint64) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.entries[key].revision != revision {
		return 0, fmt.Errorf("update %s: %w", key, bus.ErrConflict)
	}
	return b.put(key, value), nil
}

func (b *memoryBucket) Delete(_ context.Context, key string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.entries, key)
	return nil
}

func (b *memoryBucket) Keys(context.Context) ([]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.entries)), nil
}
