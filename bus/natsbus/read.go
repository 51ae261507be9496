package natsbus

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
)

// reads caches decoded values of the newest stored messages, and estimates that this process
// published. Several stages, the console and the exporters of one process follow the same
// streams; decoding each message for each of them would be half of the cost of the process.
// Values are never changed after they were handed over, see [trimtab.Value], so they can be
// shared.
type reads struct {
	mu    sync.Mutex
	known map[position]*decoded
	// order has the cached messages in order of arrival; bytes is the sum of their sizes.
	order []position
	bytes int

	// sent has the published values that have not come back yet, by message id; sentOrder and
	// sentBytes bound it.
	sent      map[string]sent
	sentOrder []string
	sentBytes int
}

// sent is a published value with its encoded bytes.
type sent struct {
	value  trimtab.Value
	origin trimtab.Origin
	data   []byte
	since  time.Time
}

// maxReadBytes bounds the messages whose values are cached, and those that were sent, and keptFor
// their age; subscribers of a stream are rarely further apart. A plan takes three times the
// memory of its message. Without keptFor the memory of an agent grew for hours, since its plans
// are small and rare.
const (
	maxReadBytes = 256 << 10
	keptFor      = 10 * time.Second
)

// position identifies a stored message; the time is part of it, since a stream that was created
// again counts from 1.
type position struct {
	kind     trimtab.Kind
	sequence uint64
	stored   time.Time
}

// decoded is the value of one message, once decoded.
type decoded struct {
	once   sync.Once
	bytes  int
	since  time.Time
	value  trimtab.Value
	origin trimtab.Origin
	err    error
}

// at returns the cache entry of a message. The first caller decodes the message.
func (r *reads) at(p position, bytes int) *decoded {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := r.known[p]; d != nil {
		return d
	}
	now := time.Now()
	d := &decoded{bytes: bytes, since: now}
	if r.known == nil {
		r.known = map[position]*decoded{}
	}
	r.known[p] = d
	r.order = append(r.order, p)
	r.bytes += bytes
	for len(r.order) > 1 && (r.bytes > maxReadBytes || now.Sub(r.known[r.order[0]].since) > keptFor) {
		oldest := r.order[0]
		r.order = r.order[1:]
		r.bytes -= r.known[oldest].bytes
		delete(r.known, oldest)
	}
	return d
}

// publishes records a value that is published under a message id, if it is an estimate: most
// stored values are, and encoding does not change an estimate.
func (r *reads) publishes(id string, s sent) {
	if s.value.Kind() != trimtab.KindEstimate {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sent == nil {
		r.sent = map[string]sent{}
	}
	now := time.Now()
	s.since = now
	r.sent[id] = s
	r.sentOrder = append(r.sentOrder, id)
	r.sentBytes += len(s.data)
	for len(r.sentOrder) > 1 && (r.sentBytes > maxReadBytes || now.Sub(r.sent[r.sentOrder[0]].since) > keptFor) {
		oldest := r.sentOrder[0]
		r.sentOrder = r.sentOrder[1:]
		r.sentBytes -= len(r.sent[oldest].data)
		delete(r.sent, oldest)
	}
}

// own returns the published value of this process that was encoded to exactly the bytes of m.
func (r *reads) own(m *nats.Msg) (sent, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.sent[m.Header.Get(nats.MsgIdHdr)]
	return s, ok && bytes.Equal(s.data, m.Data)
}

// read decodes a message of a stream once for all its subscribers.
func (r *reads) read(k *kind, m *nats.Msg, meta *nats.MsgMetadata) (trimtab.Value, trimtab.Origin, error) {
	holds, err := unpackedLen(m.Header, m.Data)
	if err == nil {
		err = published(m.Header)
	}
	if err != nil {
		return nil, trimtab.Origin{}, fmt.Errorf("read %s: %w", k.Kind, err)
	}
	d := r.at(position{k.Kind, meta.Sequence.Stream, meta.Timestamp}, holds)
	d.once.Do(func() {
		if s, ok := r.own(m); ok && m.Subject == bus.Subject(s.value.Kind(), s.value.Key()) {
			d.value, d.origin = s.value, s.origin
			return
		}
		d.value, d.origin, d.err = k.read(m.Subject, m.Header, m.Data)
	})
	return d.value, d.origin, d.err
}
