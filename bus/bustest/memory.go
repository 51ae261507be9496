package bustest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/topic"
)

// Memory is a bus inside one process. Values are encoded and decoded, so that what NATS would not
// transport fails here, too.
type Memory struct {
	// MaxDeliver is how often a stored value is delivered before it becomes a dead letter, Pause
	// how long after a handler's error it is delivered again, AnswerTimeout how long an Answered
	// value waits, Pending how many Shed values wait for one handler. Set them before the first
	// use.
	MaxDeliver    int
	Pause         time.Duration
	AnswerTimeout time.Duration
	Pending       int
	Source        string

	mu       sync.Mutex
	closed   bool
	sequence uint64
	stored   map[trimtab.Kind]*log
	core     map[trimtab.Kind][]*coreSub
	turn     map[string]int // of Answered and Shed groups
	aside    map[trimtab.Kind][][]byte
	buckets  map[string]*memoryBucket
	stops    map[int]func()
	queues   map[int]func() bus.Queue
	nextID   int
	stats    bus.Stats
}

var _ bus.Bus = (*Memory)(nil)

var errClosed = errors.New("bus is closed")

// NewMemory returns an empty bus.
func NewMemory() *Memory {
	counts := func() map[trimtab.Kind]uint64 { return map[trimtab.Kind]uint64{} }
	return &Memory{
		MaxDeliver: 10, Pause: 20 * time.Millisecond, AnswerTimeout: 10 * time.Second, Pending: 1024, Source: "memory",
		stored: map[trimtab.Kind]*log{}, core: map[trimtab.Kind][]*coreSub{}, turn: map[string]int{},
		aside: map[trimtab.Kind][][]byte{}, buckets: map[string]*memoryBucket{}, stops: map[int]func(){}, queues: map[int]func() bus.Queue{},
		stats: bus.Stats{Published: counts(), Delivered: counts(), Lost: counts(), Unreadable: counts(), Again: counts(), Older: counts()},
	}
}

// message is one value on the bus.
type message struct {
	kind   trimtab.Kind
	key    string
	data   []byte
	origin trimtab.Origin // of spans, whose bytes have none
	stored time.Time
	answer chan error // of Answered
}

// Publish sends v; see [bus.Bus].
func (m *Memory) Publish(ctx context.Context, v trimtab.Value) error {
	info, ok := topic.Of(v.Kind())
	if !ok || info.Delivery == topic.Local {
		return trimtab.Invalidf("publish %.40q: this kind does not travel", v.Kind())
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return errClosed
	}
	m.sequence++
	o := trimtab.Origin{Source: m.Source, Incarnation: 1, Sequence: m.sequence}
	m.mu.Unlock()
	data, err := codec.Encode(v, o)
	if err == nil {
		err = m.send(ctx, info.Delivery, &message{kind: v.Kind(), key: v.Key(), data: data, origin: o})
	}
	if err != nil {
		return fmt.Errorf("publish %s: %w", v.Kind(), err)
	}
	m.count(m.stats.Published, v.Kind())
	return nil
}

// Inject puts bytes on the bus as they are, as a peer could.
func (m *Memory) Inject(ctx context.Context, k trimtab.Kind, key string, data []byte) error {
	info, _ := topic.Of(k)
	return m.send(ctx, info.Delivery, &message{kind: k, key: key, data: data})
}

// Aside returns the dead letters of one kind.
func (m *Memory) Aside(k trimtab.Kind) [][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.aside[k])
}

func (m *Memory) send(ctx context.Context, d topic.Delivery, msg *message) error {
	switch d {
	case topic.Shed:
		m.shed(msg)
		return nil
	case topic.Answered:
		return m.ask(ctx, msg)
	}
	m.store(msg, d == topic.Latest)
	return nil
}

func (m *Memory) count(in map[trimtab.Kind]uint64, k trimtab.Kind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	in[k]++
}

// read decodes a message as a subscriber gets it.
func (m *Memory) read(msg *message) (v trimtab.Value, o trimtab.Origin, err error) {
	if msg.kind == trimtab.KindSpans {
		var f *trimtab.SpanFrame
		if n, bad := strconv.Atoi(msg.key); bad != nil {
			err = trimtab.Invalidf("read spans: partition %.20q", msg.key)
		} else {
			f, err = codec.Frame(n, msg.data)
		}
		v, o = f, msg.origin
	} else {
		v, o, err = codec.Decode(msg.kind, msg.data)
	}
	if err == nil && v.Key() != msg.key {
		err = trimtab.Invalidf("read %s of %.80q on the subject of %.80q", msg.kind, v.Key(), msg.key)
	}
	switch {
	case err != nil:
		m.count(m.stats.Unreadable, msg.kind)
	case msg.kind != trimtab.KindSpans && codec.Older(msg.kind, msg.data):
		m.count(m.stats.Older, msg.kind)
	}
	return v, o, err
}

// Subscribe starts delivery; see [bus.Bus].
func (m *Memory) Subscribe(_ context.Context, s bus.Subscription) (func(), error) {
	info, ok := topic.Of(s.Kind)
	if !ok || info.Delivery == topic.Local || s.Handle == nil {
		return nil, trimtab.Invalidf("subscribe to %.40q: no such kind, or no handler", s.Kind)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, fmt.Errorf("subscribe to %s: %w", s.Kind, errClosed)
	}
	var stop func()
	m.nextID++
	id := m.nextID
	if info.Delivery == topic.Shed || info.Delivery == topic.Answered {
		stop, m.queues[id] = m.subscribeCore(s)
	} else {
		stop, m.queues[id] = m.subscribeStored(s, info.Delivery == topic.Latest)
	}
	once := sync.OnceFunc(func() {
		stop()
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.stops, id)
		delete(m.queues, id)
	})
	m.stops[id] = once
	return once, nil
}

// Stats returns the counts.
func (m *Memory) Stats() bus.Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stats
	return bus.Stats{Published: maps.Clone(s.Published), Delivered: maps.Clone(s.Delivered), Lost: maps.Clone(s.Lost),
		Unreadable: maps.Clone(s.Unreadable), Again: maps.Clone(s.Again), Older: maps.Clone(s.Older)}
}

// Queues returns what waits; see [bus.Bus].
func (m *Memory) Queues(context.Context) (bus.Queues, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := bus.Queues{Aside: map[trimtab.Kind]uint64{}}
	if m.closed {
		return out, errClosed
	}
	for _, id := range slices.Sorted(maps.Keys(m.queues)) {
		out.Waiting = append(out.Waiting, m.queues[id]())
	}
	for k, aside := range m.aside {
		out.Aside[k] = uint64(len(aside))
	}
	return out, nil
}

// Close ends all subscriptions.
func (m *Memory) Close() error {
	m.mu.Lock()
	m.closed = true
	stops := slices.Collect(maps.Values(m.stops))
	m.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
	return nil
}
