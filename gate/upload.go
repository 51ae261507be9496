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

// clientTimeout is how long a client may pause while it sends a body or reads a response.
const clientTimeout = 30 * time.Second

// upload is the body of a request. It gives the client a time limit for each piece, and records
// whether the client failed to send one.
type upload struct {
	io.ReadCloser
	patience time.Duration
	waiting  atomic.Bool // a Read waits for the client
	// broke is the response status for a client that failed to send its whole body; 0: it has not
	// failed.
	broke atomic.Int32

	mu       sync.Mutex // guards the fields below
	response *http.ResponseController
	// http2 says that the request came over HTTP/2, where a time limit ends the body even if
	// nothing reads it.
	http2, closed bool
}

// uploadOf returns the body of r, nil if it has none.
func uploadOf(w http.ResponseWriter, r *http.Request, patience time.Duration) *upload {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	u := &upload{ReadCloser: r.Body, patience: patience, response: http.NewResponseController(w), http2: r.ProtoMajor == 2}
	if !u.http2 { // over HTTP/1 the server also reads the body of a refused request
		u.limit(patience)
	}
	return u
}

// limit sets the time limit for the next piece; 0: none. The transport may still read after the
// body was closed, when the connection already serves the next request; limit does nothing then.
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

// Read reads a piece, within the time limit.
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
	if u.http2 || ended { // otherwise the limit stays: the server still reads the rest
		u.limit(0)
	}
	return n, err
}

// Close closes the body; from then on limit leaves the connection alone.
func (u *upload) Close() error {
	u.mu.Lock()
	u.closed = true
	u.mu.Unlock()
	return u.ReadCloser.Close()
}

// waits reports whether a read is waiting for the client.
func (u *upload) waits() bool { return u != nil && u.waiting.Load() }

// broken returns the response status for a client that failed to send its whole body, else 0.
func (u *upload) broken() int {
	if u == nil {
		return 0
	}
	return int(u.broke.Load())
}

// download is the writer of a response over HTTP/2. It gives the client a time limit for each piece:
// client does so for a whole connection, but here one stream may stop while others go on.
type download struct {
	http.ResponseWriter
	response *http.ResponseController
	patience time.Duration
}

// Write writes a piece, within the time limit.
func (d *download) Write(p []byte) (int, error) {
	_ = d.response.SetWriteDeadline(time.Now().Add(d.patience))
	return d.ResponseWriter.Write(p)
}

// Unwrap returns the writer for http.ResponseController.
func (d *download) Unwrap() http.ResponseWriter { return d.ResponseWriter }
