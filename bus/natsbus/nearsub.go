package natsbus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/internal/pause"
	"github.com/trimtab/trimtab/topic"
)

// nearSub is a subscription to values that are passed on inside the process. At most one value of
// each key of a Latest kind waits, the newest.
type nearSub struct {
	near *near
	kind *kind
	bus.Subscription
	arrived chan struct{} // has an element when a value may be waiting

	// near.mu guards these.
	waits []*waiting
	byKey map[string]*waiting // of Latest
	bytes int
	now   *waiting // being handled
}

type waiting struct {
	bus.Delivery
	bytes int
}

// subscribe starts delivery.
func (n *near) subscribe(_ context.Context, k *kind, s bus.Subscription) (stop func(), err error) {
	d := &nearSub{near: n, kind: k, Subscription: s, arrived: make(chan struct{}, 1), byKey: map[string]*waiting{}}
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil, errClosed
	}
	n.subs[k.Kind] = append(n.subs[k.Kind], d)
	for _, v := range n.inOrder(k) {
		if key := v.Value.Key(); s.Key == "" || s.Key == key {
			d.push(v.Delivery, key)
		}
	}
	n.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { d.run(ctx) })
	forget := n.bus.subscriptions.watch(d)
	return func() {
		forget()
		n.mu.Lock()
		n.subs[k.Kind] = slices.DeleteFunc(n.subs[k.Kind], func(o *nearSub) bool { return o == d })
		n.mu.Unlock()
		cancel()
		done.Wait()
	}, nil
}

// push appends d to the queue, or counts it as lost. The caller holds near.mu.
func (s *nearSub) push(d bus.Delivery, key string) {
	if s.kind.Delivery == topic.Latest {
		if w := s.byKey[key]; w != nil {
			w.Delivery = d // a newer value replaces the one that waits
			return
		}
		w := &waiting{Delivery: d}
		s.waits, s.byKey[key] = append(s.waits, w), w
	} else {
		size := weigh(d.Value)
		if s.bytes+size > s.near.bus.config.PendingBytes {
			s.kind.shed.Add(1)
			return
		}
		s.bytes += size
		s.waits = append(s.waits, &waiting{d, size})
	}
	select {
	case s.arrived <- struct{}{}:
	default:
	}
}

// weigh estimates how much memory a waiting value takes.
func weigh(v trimtab.Value) int {
	const each = 256
	switch v := v.(type) {
	case *trimtab.Sample:
		return each + len(v.Missing)
	case *trimtab.Sketch:
		n := each + v.Latency.Bytes() + each*len(v.Exemplars)
		for _, c := range v.Components {
			n += each + c.Sojourn.Bytes()
		}
		return n
	}
	return each
}

func (s *nearSub) run(ctx context.Context) {
	for ctx.Err() == nil {
		if d, ok := s.next(); ok {
			s.handle(ctx, d)
			continue
		}
		select {
		case <-ctx.Done():
		case <-s.arrived:
		}
	}
}

// next removes the first waiting value and returns it.
func (s *nearSub) next() (bus.Delivery, bool) {
	s.near.mu.Lock()
	defer s.near.mu.Unlock()
	s.now = nil
	if len(s.waits) == 0 {
		return bus.Delivery{}, false
	}
	w := s.waits[0]
	s.waits[0] = nil
	s.waits = s.waits[1:]
	s.bytes -= w.bytes
	delete(s.byKey, w.Value.Key())
	s.now = w
	return w.Delivery, true
}

// handle delivers d. It repeats a Latest value until it was handled, a newer one waits, or it was
// tried MaxDeliver times.
func (s *nearSub) handle(ctx context.Context, d bus.Delivery) {
	c := &s.near.bus.config
	for {
		err := s.Handle(ctx, d)
		if err == nil || s.kind.Delivery == topic.Shed {
			s.kind.delivered.Add(1)
			return
		}
		if ctx.Err() != nil {
			return
		}
		d.Again++
		if errors.Is(err, trimtab.ErrInvalid) || d.Again >= c.MaxDeliver {
			if err = s.putAside(ctx, d, err); err == nil {
				return
			}
		}
		c.Logger.Debug("bus value not handled, later again", "kind", s.Kind, "for", s.For, "deliveries", d.Again, "err", err)
		pause.For(ctx, min(c.Pause<<min(d.Again-1, 10), maxPause))
		if s.overtaken(d.Value.Key(), d.Again) || ctx.Err() != nil {
			return
		}
		s.kind.again.Add(1)
	}
}

// overtaken reports whether a newer value of the key waits; if not, it records how often the
// present one was delivered.
func (s *nearSub) overtaken(key string, again int) bool {
	s.near.mu.Lock()
	defer s.near.mu.Unlock()
	s.now.Again = again
	return s.byKey[key] != nil
}

// putAside stores a value that could not be handled as a dead letter.
func (s *nearSub) putAside(ctx context.Context, d bus.Delivery, cause error) error {
	data, err := codec.Encode(d.Value, d.Origin)
	if err == nil {
		m := asideMsg(unreadableSubject+string(s.Kind), data, headerText(cause))
		_, err = s.near.bus.storeAs(ctx, m, "unreadable "+formatOrigin(d.Origin, 0), new(atomic.Pointer[error]))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", cause, err)
	}
	s.near.bus.config.Logger.Warn("bus value dead-lettered", "kind", s.Kind, "for", s.For, "deliveries", d.Again, "err", cause)
	return nil
}

// queue returns how many values wait, and since when the oldest has waited.
func (s *nearSub) queue(context.Context) (bus.Queue, error) {
	q := bus.Queue{For: s.For, Kind: s.Kind, Consumer: s.Consumer}
	s.near.mu.Lock()
	defer s.near.mu.Unlock()
	all := s.waits
	if s.now != nil {
		all = append([]*waiting{s.now}, all...)
	}
	q.Waiting = uint64(len(all))
	for _, w := range all {
		if w.Again > 0 {
			q.Again++
		}
		if q.Oldest.IsZero() || w.Stored.Before(q.Oldest) {
			q.Oldest = w.Stored
		}
	}
	return q, nil
}
