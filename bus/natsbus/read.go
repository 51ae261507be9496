package natsbus

import (
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/trimtab/trimtab"
)

// reads keeps the newest stored messages as they were decoded. Every stage of
// a process, its console and its exporters follow the same streams, and to
// decode each message once for all of them instead of once for each is half of
// what the whole process costs when nothing happens. Values are never changed
// after they were handed over, see [trimtab.Value], so they can be shared.
type reads struct {
	mu    sync.Mutex
	known map[place]*decoded
	// order has the places in order of arrival, bytes what their messages hold.
	order []place
	bytes int
}

// maxReadBytes bounds the messages whose values are kept; those that follow a
// stream are rarely further apart than this.
const maxReadBytes = 1 << 20

// place is where a message is: by time too, since a stream that was made anew
// counts from 1 again.
type place struct {
	kind     trimtab.Kind
	sequence uint64
	stored   time.Time
}

// decoded is what one message holds, once done.
type decoded struct {
	once   sync.Once
	bytes  int
	value  trimtab.Value
	origin trimtab.Origin
	err    error
}

// at returns the entry of a message; the caller decodes it if it is the first.
func (r *reads) at(p place, bytes int) *decoded {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := r.known[p]; d != nil {
		return d
	}
	d := &decoded{bytes: bytes}
	if r.known == nil {
		r.known = map[place]*decoded{}
	}
	r.known[p] = d
	r.order = append(r.order, p)
	r.bytes += bytes
	for len(r.order) > 1 && r.bytes > maxReadBytes {
		oldest := r.order[0]
		r.order = r.order[1:]
		r.bytes -= r.known[oldest].bytes
		delete(r.known, oldest)
	}
	return d
}

// readStored decodes a message of a stream, once for all that get it.
func (b *Bus) readStored(k *kind, m *nats.Msg, meta *nats.MsgMetadata) (trimtab.Value, trimtab.Origin, error) {
	d := b.reads.at(place{k.Kind, meta.Sequence.Stream, meta.Timestamp}, len(m.Data))
	d.once.Do(func() { d.value, d.origin, d.err = b.read(k, m.Subject, m.Header, m.Data) })
	return d.value, d.origin, d.err
}
