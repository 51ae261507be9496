package gate

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// uploadTimeout is how long a client may send nothing of a body.
const uploadTimeout = 30 * time.Second

// upload is the body of a request. Its client has uploadTimeout for each piece, and is the one to
// blame where a piece does not come.
type upload struct {
	io.ReadCloser
	// waiting: for the client. broke: the body ended before it was complete.
	waiting, broke atomic.Bool

	mu       sync.Mutex // guards the rest
	response *http.ResponseController
	// http2: a time limit ends the body even when nobody reads.
	http2, closed bool
}

// uploadOf returns the body of r, nil if it has none.
func uploadOf(w http.ResponseWriter, r *http.Request) *upload {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	u := &upload{ReadCloser: r.Body, response: http.NewResponseController(w), http2: r.ProtoMajor == 2}
	if !u.http2 { // the server reads the body of what is refused, too
		u.limit(uploadTimeout)
	}
	return u
}

// limit sets the time for the next piece; 0: none. The transport may read after the request has
// ended, when the connection belongs to the next one.
func (u *upload) limit(d time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return
	}
	var at time.Time
	if d > 0 {
		at = time.Now().Add(d)
	}
	_ = u.response.SetReadDeadline(at)
}

// Read reads a piece.
func (u *upload) Read(p []byte) (int, error) {
	u.limit(uploadTimeout)
	u.waiting.Store(true)
	n, err := u.ReadCloser.Read(p)
	u.waiting.Store(false)
	if err != nil && !errors.Is(err, io.EOF) {
		u.broke.Store(true)
	}
	if u.http2 || err != nil {
		u.limit(0)
	}
	return n, err
}

// Close ends the body.
func (u *upload) Close() error {
	u.mu.Lock()
	u.closed = true
	u.mu.Unlock()
	return u.ReadCloser.Close()
}

// waits reports whether the service waits for the client.
func (u *upload) waits() bool { return u != nil && u.waiting.Load() }

// broken reports whether the client did not send the whole body.
func (u *upload) broken() bool { return u != nil && u.broke.Load() }
