package otlp

import (
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"

	"google.golang.org/grpc/codes"

	"github.com/trimtab/trimtab/collector"
)

// The content types of OTLP/HTTP.
const (
	typeProtobuf = "application/x-protobuf"
	typeJSON     = "application/json"
)

// web serves OTLP/HTTP.
type web struct {
	from  *collector.Source
	proto collector.ResourceCache
	json  collector.ResourceCache
	// bodies reads and bounds what is held.
	bodies bodies
	// refused counts a request by reason.
	refused func(reason string)
}

func newHTTPServer(c *Config, w *web) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/traces", w.traces)
	mux.HandleFunc("/v1/metrics", tracesOnly)
	mux.HandleFunc("/v1/logs", tracesOnly)
	return &http.Server{
		Handler:           mux,
		TLSConfig:         c.TLS,
		ReadHeaderTimeout: c.Timeout / 3,
		ReadTimeout:       c.Timeout,
		WriteTimeout:      2 * c.Timeout, // counts from the end of the header
		IdleTimeout:       10 * c.Timeout,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
}

// traces serves POST /v1/traces.
func (w *web) traces(rw http.ResponseWriter, r *http.Request) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	asJSON := kind == typeJSON
	switch {
	case r.Method != http.MethodPost:
		rw.Header().Set("Allow", http.MethodPost)
		w.fail(rw, asJSON, failure{http.StatusMethodNotAllowed, codes.Unimplemented, "method", "use POST"})
		return
	case err != nil || (kind != typeProtobuf && kind != typeJSON):
		w.fail(rw, true, failure{http.StatusUnsupportedMediaType, codes.InvalidArgument, "content_type", "Content-Type must be " + typeProtobuf + " or " + typeJSON})
		return
	}
	packer := w.from.Packer()
	defer w.from.Recycle(packer)
	if f := w.read(rw, r, asJSON, packer); f.http != 0 {
		linger(rw, r, 2*int64(w.bodies.max))
		w.fail(rw, asJSON, f)
		return
	}
	if err := w.from.Send(r.Context(), packer); err != nil {
		if refusal := collector.AsRefusal(err); refusal != nil {
			rw.Header().Set("Retry-After", retrySeconds(refusal.RetryAfter))
		}
		w.write(rw, asJSON, http.StatusServiceUnavailable, statusBody(asJSON, codes.Unavailable, err.Error()))
		return
	}
	if body := partialOf(packer); asJSON {
		w.write(rw, asJSON, http.StatusOK, body.json())
	} else {
		w.write(rw, asJSON, http.StatusOK, body.protobuf())
	}
}

// read takes the body and scans it into packer. The body is let go before the
// spans wait for their answer.
func (w *web) read(rw http.ResponseWriter, r *http.Request, asJSON bool, packer *collector.Packer) failure {
	body, err := w.bodies.read(rw, r)
	if body != nil {
		defer w.bodies.free(body)
	}
	if err == nil {
		if asJSON {
			err = ScanJSON(body.data, &w.json, packer)
		} else {
			err = ScanRequest(body.data, &w.proto, packer)
		}
	}
	switch {
	case err == nil:
		return failure{}
	case errors.Is(err, errTooLarge):
		return failure{http.StatusRequestEntityTooLarge, codes.ResourceExhausted, "too_large", err.Error()}
	case errors.Is(err, errEncoding):
		return failure{http.StatusUnsupportedMediaType, codes.InvalidArgument, "content_encoding", err.Error()}
	case errors.Is(err, errNoRoom):
		return failure{http.StatusServiceUnavailable, codes.Unavailable, "overloaded", err.Error()}
	}
	return failure{http.StatusBadRequest, codes.InvalidArgument, "malformed", err.Error()}
}

// linger reads what is left of a refused body, up to most bytes and for as long
// as a request may take, and keeps nothing of it. While a client sends, it does
// not read: net/http would answer, wait half a second and reset the connection
// over what is still being sent, and a client that is slow, or on a busy
// machine, would lose the answer with it, and with the answer when to try again.
// What is beyond most gets that half second.
func linger(rw http.ResponseWriter, r *http.Request, most int64) {
	if r.Header.Get("Expect") != "" {
		return // it waits for the answer before it sends
	}
	_, _ = io.CopyN(io.Discard, r.Body, most)
	// Tells net/http to wait, also for a client that asked for the end of the
	// connection.
	_, _ = http.MaxBytesReader(rw, r.Body, 0).Read(make([]byte, 1))
}

// failure is the answer to a request that was refused whole.
type failure struct {
	http    int
	rpc     codes.Code
	reason  string
	message string
}

func (w *web) fail(rw http.ResponseWriter, asJSON bool, f failure) {
	w.refused(f.reason)
	if f.http == http.StatusServiceUnavailable {
		rw.Header().Set("Retry-After", "1")
	}
	w.write(rw, asJSON, f.http, statusBody(asJSON, f.rpc, f.message))
}

func (w *web) write(rw http.ResponseWriter, asJSON bool, code int, body []byte) {
	kind := typeProtobuf
	if asJSON {
		kind = typeJSON
	}
	rw.Header().Set("Content-Type", kind)
	rw.WriteHeader(code)
	_, _ = rw.Write(body) // a client that has gone needs no answer
}

// tracesOnly answers for the signals that are not taken.
func tracesOnly(rw http.ResponseWriter, r *http.Request) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	asJSON := kind == typeJSON
	(&web{}).write(rw, asJSON, http.StatusNotImplemented, statusBody(asJSON, codes.Unimplemented, "this receiver takes traces only"))
}
