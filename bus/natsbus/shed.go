package natsbus

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/trimtab/trimtab"
)

// shedder sends telemetry from a bounded queue, so that no publisher ever waits for the
// connection. A value that does not fit is dropped after it got its sequence number, so that the
// subscriber counts the loss.
type shedder struct {
	conn  *nats.Conn
	limit int64
	bytes atomic.Int64
	done  chan struct{}

	mu     sync.Mutex
	places map[string]uint64
	queue  chan shed
	closed bool
}

// maxQueued bounds the values that wait to be sent.
const maxQueued = 8192

func startShedder(conn *nats.Conn, limit int) *shedder {
	s := &shedder{conn: conn, limit: int64(limit), places: map[string]uint64{},
		queue: make(chan shed, maxQueued), done: make(chan struct{})}
	go s.run()
	return s
}

// send numbers a value and queues it; it never blocks.
func (s *shedder) send(k trimtab.Kind, key string, data []byte, o trimtab.Origin) error {
	v := shed{prefix: kindPrefix(k), key: key, data: data}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.places[v.subject()]++
	v.origin = formatOrigin(o, s.places[v.subject()])
	if s.bytes.Load()+int64(len(data)) > s.limit {
		return nil
	}
	select {
	case s.queue <- v:
		s.bytes.Add(int64(len(data)))
	default:
	}
	return nil
}

func (s *shedder) run() {
	defer close(s.done)
	for v := range s.queue {
		all := s.gather(v)
		for _, m := range together(all) {
			// An error here is a full reconnect buffer: shed.
			_ = s.conn.PublishMsg(m)
		}
		for i := range all {
			s.bytes.Add(-int64(len(all[i].data)))
		}
	}
}

// gather collects values for one message: first, then everything in the queue. It
// waits for more once, for gatherFor, and ends when the queue is empty again or the
// message has maxBatch bytes.
func (s *shedder) gather(first shed) []shed {
	all, size, paused := []shed{first}, first.size(), false
	for size < maxBatch {
		select {
		case v, ok := <-s.queue:
			if !ok {
				return all
			}
			all, size = append(all, v), size+v.size()
			continue
		default:
		}
		if paused {
			break
		}
		paused = true
		time.Sleep(gatherFor)
	}
	return all
}

// close sends the queued values, for at most a second.
func (s *shedder) close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.queue)
	}
	s.mu.Unlock()
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-s.done:
	case <-t.C:
	}
}
