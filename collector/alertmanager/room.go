package alertmanager

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// budget limits the total size of all bodies in progress. Only the part of a body that has arrived
// counts, so that many slow senders of small bodies do not block others.
type budget struct {
	most int64
	held atomic.Int64
}

func (m *budget) reserve(n int) bool {
	if m.held.Add(int64(n)) > m.most {
		m.held.Add(int64(-n))
		return false
	}
	return true
}

// free subtracts a body from the sum.
func (m *budget) free(body []byte) { m.held.Add(int64(-cap(body))) }

// firstPiece is the size with which a body counts at first, in bytes.
const firstPiece = 4 << 10

// read returns the whole body within the timeout, or a refusal.
func (m *budget) read(w http.ResponseWriter, req *http.Request, timeout time.Duration) (body []byte, err error) {
	tooLarge := refusal{http.StatusRequestEntityTooLarge, "too_large", "the body is larger than 1 MiB: lower max_alerts in Alertmanager's webhook_config"}
	if req.ContentLength > MaxBody {
		return nil, tooLarge
	}
	// On an error the writer has no deadlines; then the server's own applies.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(timeout))
	defer func() {
		if err == nil {
			_ = control.SetReadDeadline(time.Time{})
			return
		}
		m.free(body)
		body = nil
	}()
	for {
		if len(body) == cap(body) {
			grown := max(firstPiece, 2*cap(body))
			if !m.reserve(grown - cap(body)) {
				return body, refusal{http.StatusServiceUnavailable, "overloaded", "too many bodies at a time"}
			}
			bigger := make([]byte, len(body), grown)
			copy(bigger, body)
			body = bigger
		}
		n, err := req.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case len(body) > MaxBody:
			return body, tooLarge
		case errors.Is(err, io.EOF):
			return body, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			// Not 408: Alertmanager takes that for final, and a busy network is not.
			return body, refusal{http.StatusServiceUnavailable, "slow", "the body did not arrive in time"}
		case err != nil:
			return body, refusal{http.StatusBadRequest, "malformed", "the body was cut off"}
		}
	}
}
