package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

// The bounds of the streams of events.
const (
	maxStreams = 64
	// streamPause is the least time between two events of one stream.
	streamPause = 250 * time.Millisecond
	// heartbeat is how often a stream without news sends a sign of life.
	heartbeat = 15 * time.Second
	// streamPatience is how long a client may take to read an event.
	streamPatience = 5 * time.Second
)

// streams counts the clients that listen.
type streams struct{ open atomic.Int64 }

// events streams changes until the client or the process ends. A stream has no queue, only the
// version that it sent last: a slow client costs no memory, and one that does not read at all is
// dropped.
func (h *handler) events(w http.ResponseWriter, r *http.Request) {
	if h.streams.open.Add(1) > maxStreams {
		h.streams.open.Add(-1)
		w.Header().Set("Retry-After", "10")
		problem(w, http.StatusServiceUnavailable, fmt.Errorf("open stream of events: %d are open already", maxStreams))
		return
	}
	defer h.streams.open.Add(-1)
	s := &stream{ResponseWriter: w, control: http.NewResponseController(w)}
	// The server's read timeout must not end a stream. An error says that the connection has no
	// deadlines, which is as good.
	_ = s.control.SetReadDeadline(time.Time{})
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	// Taken before the client reads the first bytes, so that it gets every change from then on.
	_, told := h.view.Changes(0, time.Now())
	if s.write(": trimtab\nretry: 2000\n\n") != nil {
		return
	}
	h.stream(r, s, told)
}

// stream is the connection of one client.
type stream struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (s *stream) write(text string) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(streamPatience))
	if _, err := s.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}

// stream sends what changed since the version that the client has.
func (h *handler) stream(r *http.Request, s *stream, told uint64) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		changed := h.view.Changed()
		c, version := h.view.Changes(told, time.Now())
		if version != told {
			told = version
			b, err := json.Marshal(c)
			if err != nil || s.write("event: changed\ndata: "+string(b)+"\n\n") != nil {
				return
			}
			rest.Reset(streamPause)
			select {
			case <-rest.C:
			case <-r.Context().Done():
				return
			case <-h.options.Done:
				return
			}
			continue
		}
		select {
		case <-changed:
		case <-beat.C:
			if s.write(": still here\n\n") != nil {
				return
			}
		case <-r.Context().Done():
			return
		case <-h.options.Done:
			return
		}
	}
}
