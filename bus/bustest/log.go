package bustest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
)

// maxLog limits the values that a Durable kind keeps.
const maxLog = 1 << 16

// log is one stored kind: a list of messages with numbers, and the groups
// that read it. Memory.mu guards it.
type log struct {
	first   uint64 // the number of entries[0]
	entries []*message
	groups  map[string]*cursor
	wake    chan struct{} // closed when there may be more
}

// cursor is the position of one group, which handles one value at a time.
type cursor struct {
	next    uint64
	busy    bool
	again   int
	notTill time.Time
}

func (m *Memory) logOf(k trimtab.Kind) *log {
	l := m.stored[k]
	if l == nil {
		l = &log{first: 1, groups: map[string]*cursor{}, wake: make(chan struct{})}
		m.stored[k] = l
	}
	return l
}

// store appends msg; when only the latest of a key is kept it replaces the former one.
func (m *Memory) store(msg *message, latest bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.logOf(msg.kind)
	msg.stored = time.Now()
	if latest {
		for i, old := range l.entries {
			if old != nil && old.key == msg.key {
				l.entries[i] = nil
			}
		}
	}
	l.entries = append(l.entries, msg)
	for len(l.entries) > 0 && (l.entries[0] == nil || len(l.entries) > maxLog) {
		l.entries = l.entries[1:]
		l.first++
	}
	l.notify()
}

func (l *log) notify() {
	close(l.wake)
	l.wake = make(chan struct{})
}

// subscribeStored needs m.mu, and so does queue.
func (m *Memory) subscribeStored(s bus.Subscription, latest bool) (stop func(), queue func() bus.Queue) {
	l := m.logOf(s.Kind)
	name := s.Consumer + " " + s.Key
	c := l.groups[name]
	if c == nil || s.Consumer == "" {
		c = &cursor{}
		if s.Consumer == "" && !latest && !s.History {
			c.next = l.first + uint64(len(l.entries))
		}
		if s.Consumer != "" {
			l.groups[name] = c
		}
	}
	for c.next = max(c.next, l.first); s.MaxAge > 0 && c.next < l.first+uint64(len(l.entries)); c.next++ {
		if msg := l.entries[c.next-l.first]; msg != nil && time.Since(msg.stored) <= s.MaxAge {
			break
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			m.readLog(ctx, l, c, s)
		}
	})
	return func() { cancel(); done.Wait() }, func() bus.Queue { return l.queue(c, s) }
}

// queue returns the queue of c.
func (l *log) queue(c *cursor, s bus.Subscription) bus.Queue {
	q := bus.Queue{For: s.For, Kind: s.Kind, Consumer: s.Consumer}
	for n := max(c.next, l.first); n < l.first+uint64(len(l.entries)); n++ {
		msg := l.entries[n-l.first]
		if msg == nil || s.Key != "" && msg.key != s.Key {
			continue
		}
		if q.Waiting == 0 {
			q.Oldest = msg.stored
			q.Again = uint64(min(c.again, 1))
		}
		q.Waiting++
	}
	return q
}

// readLog handles the next value for c, or waits for one.
func (m *Memory) readLog(ctx context.Context, l *log, c *cursor, s bus.Subscription) {
	m.mu.Lock()
	now := time.Now()
	wake, wait := l.wake, time.Hour
	if c.busy || now.Before(c.notTill) {
		if !c.busy {
			wait = c.notTill.Sub(now)
		}
		m.mu.Unlock()
		await(ctx, wake, wait)
		return
	}
	msg := l.after(c, s.Key)
	if msg == nil {
		m.mu.Unlock()
		await(ctx, wake, wait)
		return
	}
	c.busy = true
	again := c.again
	m.mu.Unlock()

	err := m.handleStored(ctx, s, msg, again)

	m.mu.Lock()
	defer m.mu.Unlock()
	c.busy = false
	switch {
	case err == nil:
		c.next++
		c.again = 0
	case errors.Is(err, trimtab.ErrInvalid) || c.again+1 >= m.MaxDeliver:
		m.aside[msg.kind] = append(m.aside[msg.kind], slices.Clone(msg.data))
		c.next++
		c.again = 0
	case ctx.Err() != nil:
		// Left on the bus by one who stopped.
	default:
		c.again++
		c.notTill = time.Now().Add(m.Pause)
	}
	l.notify()
}

func (m *Memory) handleStored(ctx context.Context, s bus.Subscription, msg *message, again int) error {
	v, o, err := m.read(msg)
	if err != nil {
		return err
	}
	if again > 0 {
		m.count(m.stats.Again, msg.kind)
	}
	err = s.Handle(ctx, bus.Delivery{Value: v, Origin: o, Stored: msg.stored, Again: again})
	if err == nil {
		m.count(m.stats.Delivered, msg.kind)
	}
	return err
}

// after returns the next message for c and moves c to it; nil: there is none yet.
func (l *log) after(c *cursor, key string) *message {
	before := c.next
	c.next = max(c.next, l.first)
	for ; c.next < l.first+uint64(len(l.entries)); c.next++ {
		if msg := l.entries[c.next-l.first]; msg != nil && (key == "" || msg.key == key) {
			if c.next != before {
				c.again = 0
			}
			return msg
		}
	}
	return nil
}

func await(ctx context.Context, wake <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-wake:
	case <-t.C:
	case <-ctx.Done():
	}
}
