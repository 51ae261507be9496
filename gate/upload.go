package gate

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// uploadTimeout is how long a client may send nothing of a body.
const uploadTimeout = 30 * time.Second

// upload is the body of a request. Its client has some time for each piece, and is the one to blame
// where a piece does not come.
type upload struct {
	io.ReadCloser
	patience time.Duration
	waiting  atomic.Bool // for the client
	// broke is the status for a client that did not send the whole body, 0: it may yet.
	broke atomic.Int32

	mu       sync.Mutex // guards the rest
	response *http.ResponseController
	// http2: a time limit ends the body even when nobody reads.
	http2, closed bool
}

// uploadOf returns the body of r, nil if it has none.
func uploadOf(w http.ResponseWriter, r *http.Request, patience time.Duration) *upload {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	u := &upload{ReadCloser: r.Body, patience: patience, response: http.NewResponseController(w), http2: r.ProtoMajor == 2}
	if !u.http2 { // the server reads the body of what is refused, too
		u.limit(patience)
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
	u.limit(u.patience)
	u.waiting.Store(true)
	n, err := u.ReadCloser.Read(p)
	u.waiting.Store(false)
	ended := errors.Is(err, io.EOF)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		u.broke.Store(http.StatusRequestTimeout)
	case err != nil && !ended:
		u.broke.Store(http.StatusBadRequest)
	}
	if u.http2 || ended { // else the limit holds for the rest, which the server reads before it answers
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

// broken returns the status for a client that did not send the whole body, 0 for others.
func (u *upload) broken() int {
	if u == nil {
		return 0
	}
	return int(u.broke.Load())
}
