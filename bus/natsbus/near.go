package natsbus

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/internal/pause"
	"github.com/trimtab/trimtab/topic"
)

// keepEvery is how often the newest values of Latest kinds are stored that only this process can
// read.
const keepEvery = 30 * time.Second

// maxKept bounds the keys of one Latest kind; the ones that were silent for
// longest go first.
const maxKept = 1 << 16

// near passes Shed and Latest values from publisher to subscriber inside this process, without
// encoding them. It is used when the embedded server has no other client; most traffic is of these
// kinds. Values are never changed after they were handed over, so they can be shared.
//
// A Latest value is stored, for the next start of the process, every keepEvery and when the bus
// is closed. It is stored at once while a group subscribes to its kind, since the group resumes
// where it stopped, or while the store refuses.
type near struct {
	bus *Bus

	// storing is locked while all new values are stored, and read-locked while a single value is,
	// so that an older one is never stored after a newer one.
	storing sync.RWMutex

	mu   sync.Mutex
	subs map[trimtab.Kind][]*nearSub
	// answerers are the subscriptions to Answered kinds.
	answerers []*nearAnswerer
	turn      map[string]int // of groups
	kept      map[trimtab.Kind]map[string]*keptValue
	groups    map[trimtab.Kind]int // members of groups that read the stream
	count     uint64
	closed    bool

	quit func()
	done chan struct{}
}

// keptValue is the newest value of one key.
type keptValue struct {
	bus.Delivery
	order uint64
	dirty bool // not stored yet
}

// openNear starts n; nil when others can reach the bus.
func openNear(ctx context.Context, b *Bus) *near {
	if !b.config.alone() {
		return nil
	}
	n := &near{bus: b, subs: map[trimtab.Kind][]*nearSub{}, turn: map[string]int{}, kept: map[trimtab.Kind]map[string]*keptValue{},
		groups: map[trimtab.Kind]int{}, done: make(chan struct{})}
	for _, k := range n.latest() {
		n.kept[k.Kind] = map[string]*keptValue{}
		if err := n.load(ctx, k); err != nil {
			b.config.Logger.Warn("bus starts without what was stored", "kind", k.Kind, "err", err)
		}
	}
	run, quit := context.WithCancel(context.WithoutCancel(ctx))
	n.quit = quit
	go n.run(run)
	return n
}

// carries reports whether values of k go from publisher to subscriber without the server.
func (n *near) carries(k *kind) bool {
	return n != nil && (k.Delivery == topic.Shed || k.Delivery == topic.Latest)
}

// latest lists the Latest kinds.
func (n *near) latest() []*kind {
	var out []*kind
	for _, info := range topic.All() {
		if info.Delivery == topic.Latest {
			out = append(out, n.bus.kinds[info.Kind])
		}
	}
	return out
}

// load reads the values of k that an earlier process stored.
func (n *near) load(ctx context.Context, k *kind) error {
	s, err := n.bus.js.Stream(ctx, k.stream.Name)
	if err != nil {
		return err
	}
	state := s.CachedInfo().State
	if state.Msgs == 0 {
		return nil
	}
	for next := state.FirstSeq; next <= state.LastSeq; next++ {
		m, err := k.nextStored(ctx, s, next)
		if err != nil || m == nil {
			return err
		}
		next = m.Sequence
		v, o, err := k.read(m.Subject, m.Header, m.Data)
		if err != nil {
			k.unreadable.Add(1)
			n.bus.config.Logger.Warn("bus value that was stored cannot be read", "kind", k.Kind, "subject", m.Subject, "err", err)
			continue
		}
		n.keep(k, bus.Delivery{Value: v, Origin: o, Stored: m.Time}, false)
	}
	return nil
}

// publish passes v to its subscribers. If v must be stored at once, publish stores it first, and an
// error means that no subscriber got it.
func (n *near) publish(ctx context.Context, k *kind, v trimtab.Value, o trimtab.Origin) error {
	if err := v.Validate(); err != nil {
		return err
	}
	d := bus.Delivery{Value: v, Origin: o}
	if k.Delivery == topic.Shed {
		return n.hand(k, d, false)
	}
	d.Stored = time.Now()
	if !n.storesNow(k) {
		return n.hand(k, d, true)
	}
	n.storing.RLock()
	defer n.storing.RUnlock()
	if err := n.store(ctx, k, d); err != nil {
		return err
	}
	return n.hand(k, d, false)
}

// storesNow reports whether values of a Latest kind are stored one by one.
func (n *near) storesNow(k *kind) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.groups[k.Kind] > 0 || k.unstored.Load() != nil
}

// store writes d into the stream of its kind. The caller holds n.storing, for reading or writing.
func (n *near) store(ctx context.Context, k *kind, d bus.Delivery) error {
	data, err := codec.Encode(d.Value, d.Origin)
	if err != nil {
		return err
	}
	m := asideMsg(bus.Subject(k.Kind, d.Value.Key()), data, "")
	_, err = n.bus.storeAs(ctx, m, formatOrigin(d.Origin, 0), &k.unstored)
	return err
}

// hand passes d to all its subscribers. dirty says that d is not stored yet.
func (n *near) hand(k *kind, d bus.Delivery, dirty bool) error {
	key := d.Value.Key()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return errClosed
	}
	if k.Delivery == topic.Latest {
		n.keep(k, d, dirty)
	}
	groups := map[string][]*nearSub(nil)
	for _, s := range n.subs[k.Kind] {
		switch {
		case s.Key != "" && s.Key != key:
		case s.Consumer == "":
			s.push(d, key)
		default:
			if groups == nil {
				groups = map[string][]*nearSub{}
			}
			name := s.Consumer + " " + s.Key
			groups[name] = append(groups[name], s)
		}
	}
	for name, members := range groups {
		at := string(k.Kind) + " " + name
		n.turn[at]++
		members[n.turn[at]%len(members)].push(d, key)
	}
	return nil
}

// keep records d as the newest value of its key. The caller holds n.mu, or n is not in use.
func (n *near) keep(k *kind, d bus.Delivery, dirty bool) {
	all := n.kept[k.Kind]
	n.count++
	all[d.Value.Key()] = &keptValue{d, n.count, dirty}
	if len(all) > maxKept {
		oldest := slices.MinFunc(n.inOrder(k), func(a, b *keptValue) int { return cmp.Compare(a.order, b.order) })
		delete(all, oldest.Value.Key())
	}
}

// inOrder returns the kept values of k, in order of arrival. The caller holds n.mu.
func (n *near) inOrder(k *kind) []*keptValue {
	var out []*keptValue
	for _, v := range n.kept[k.Kind] {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b *keptValue) int { return cmp.Compare(a.order, b.order) })
	return out
}

// run stores new values every keepEvery until ctx ends.
func (n *near) run(ctx context.Context) {
	defer close(n.done)
	// Stages save their states every minute from the start. Half way between, the server has
	// let go of the blocks that it read for that, of up to 4 MiB each.
	for wait := keepEvery / 2; pause.For(ctx, wait); wait = keepEvery {
		for _, k := range n.latest() {
			n.flush(ctx, k)
		}
	}
}

// flush stores the new values of k. It leaves out a value that cannot be encoded; it stops at the
// first that cannot be stored, and from then on publishers get the error.
func (n *near) flush(ctx context.Context, k *kind) {
	n.storing.Lock()
	defer n.storing.Unlock()
	n.mu.Lock()
	all := n.inOrder(k)
	n.mu.Unlock()
	for _, v := range all {
		n.mu.Lock()
		due := v.dirty && n.kept[k.Kind][v.Value.Key()] == v
		n.mu.Unlock()
		if !due {
			continue
		}
		err := n.store(ctx, k, v.Delivery)
		if err != nil {
			n.bus.config.Logger.Warn("bus value not stored", "kind", k.Kind, "key", v.Value.Key(), "err", err)
		}
		if err != nil && !errors.Is(err, trimtab.ErrInvalid) {
			return
		}
		n.mu.Lock()
		v.dirty = false
		n.mu.Unlock()
	}
}

// close stores the new values and ends n. Its subscriptions must have ended.
func (n *near) close() {
	if n == nil {
		return
	}
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.quit()
	<-n.done
	ctx, ended := n.bus.inTime(context.Background())
	defer ended()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, k := range n.latest() {
		n.flush(ctx, k)
	}
}

// join makes values of k be stored at once from now on, for a group that reads
// the stream; what is new is stored now.
func (n *near) join(ctx context.Context, k *kind) (leave func()) {
	count := func(by int) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.groups[k.Kind] += by
	}
	count(1)
	n.flush(ctx, k)
	return func() { count(-1) }
}

// nextStored returns the first message of k from a number on; nil: none.
func (k *kind) nextStored(ctx context.Context, s jetstream.Stream, from uint64) (*jetstream.RawStreamMsg, error) {
	m, err := s.GetMsg(ctx, from, jetstream.WithGetMsgSubject(k.stream.Subjects))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	return m, err
}
