package console

import (
	"fmt"
	"net/http"
	"sync/atomic"
)

// An answer stays in memory until its client has read it. The large ones being sent are limited
// in sum, so that slow readers cost little; small ones always pass.
const (
	smallAnswer = 64 << 10
	maxFlight   = 48 << 20
)

// flight counts the bytes of large answers being sent.
type flight struct{ bytes atomic.Int64 }

// bounded answers 503 instead of a large answer while too many bytes are being sent.
func (f *flight) bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &outgoing{ResponseWriter: w, flight: f, code: http.StatusOK}
		next.ServeHTTP(a, r)
		a.begin()
	})
}

// outgoing is an answer being sent. Its status line waits for the first byte.
type outgoing struct {
	http.ResponseWriter
	flight *flight
	code   int
	begun  bool
}

// WriteHeader records the status.
func (a *outgoing) WriteHeader(code int) { a.code = code }

func (a *outgoing) begin() {
	if !a.begun {
		a.begun = true
		a.ResponseWriter.WriteHeader(a.code)
	}
}

// Write writes b, or refuses the whole answer.
func (a *outgoing) Write(b []byte) (int, error) {
	if n := int64(len(b)); n > smallAnswer {
		defer a.flight.bytes.Add(-n)
		if a.flight.bytes.Add(n) > maxFlight && !a.begun {
			a.begun = true
			a.Header().Set("Retry-After", "5")
			problem(a.ResponseWriter, http.StatusServiceUnavailable, fmt.Errorf("send %d bytes: too many answers wait to be read", n))
			return 0, http.ErrAbortHandler
		}
	}
	a.begin()
	return a.ResponseWriter.Write(b)
}
