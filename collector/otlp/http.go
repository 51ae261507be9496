package otlp

import (
	"errors"
	"io"
	"log/slog"
	"math"
	"mime"
	"net/http"
	"strconv"

	"google.golang.org/grpc/codes"

	"github.com/trimtab/trimtab/collector"
)

// The content types of OTLP/HTTP.
const (
	typeProtobuf = "application/x-protobuf"
	typeJSON     = "application/json"
)

// web serves OTLP/HTTP and Zipkin.
type web struct {
	from  *collector.Source
	proto collector.ResourceCache
	json  collector.ResourceCache
	// fromZipkin and zipkin are for POST /api/v2/spans.
	fromZipkin *collector.Source
	zipkin     collector.ResourceCache
	// bodies reads request bodies and limits their total size.
	bodies bodies
	// refused and refusedZipkin count a request by reason.
	refused, refusedZipkin func(reason string)
}

func newHTTPServer(c *Config, w *web) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/traces", w.traces)
	mux.HandleFunc("/v1/trace", w.traces) // before OTLP 0.20
	mux.HandleFunc("/api/v2/spans", w.spans)
	mux.HandleFunc("/", w.elsewhere)
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

// mediaType returns the type of a body without its parameters.
func mediaType(r *http.Request) string {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return ""
	}
	return kind
}

// isProtobuf knows the type of OTLP, and the registered one.
func isProtobuf(kind string) bool { return kind == typeProtobuf || kind == "application/protobuf" }

// traces serves POST /v1/traces.
func (w *web) traces(rw http.ResponseWriter, r *http.Request) {
	kind := mediaType(r)
	asJSON := kind == typeJSON
	switch {
	case r.Method != http.MethodPost:
		rw.Header().Set("Allow", http.MethodPost)
		w.fail(rw, asJSON, failure{http.StatusMethodNotAllowed, codes.Unimplemented, "method", "use POST"})
		return
	case !isProtobuf(kind) && !asJSON:
		w.fail(rw, true, failure{http.StatusUnsupportedMediaType, codes.InvalidArgument, "content_type", "Content-Type must be " + typeProtobuf + " or " + typeJSON})
		return
	}
	packer := w.from.Packer()
	defer w.from.Recycle(packer)
	f := w.read(rw, r, func(body []byte) error {
		if asJSON {
			return ScanJSON(body, &w.json, packer)
		}
		return ScanRequest(body, &w.proto, packer)
	})
	if f.http != 0 {
		w.fail(rw, asJSON, f)
		return
	}
	if err := w.from.Send(r.Context(), packer); err != nil {
		retryLater(rw, err)
		w.write(rw, asJSON, http.StatusServiceUnavailable, statusBody(asJSON, codes.Unavailable, err.Error()))
		return
	}
	if body := partialOf(packer); asJSON {
		w.write(rw, asJSON, http.StatusOK, body.json())
	} else {
		w.write(rw, asJSON, http.StatusOK, body.protobuf())
	}
}

// retryLater sets when the sender of a refused request should retry.
func retryLater(rw http.ResponseWriter, err error) {
	if refusal := collector.AsRefusal(err); refusal != nil {
		rw.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(refusal.RetryAfter.Seconds())))))
	}
}

// read reads the body and scans it. If the body is refused, it reads the rest and drops it.
func (w *web) read(rw http.ResponseWriter, r *http.Request, scan func(body []byte) error) failure {
	f := w.readBody(rw, r, scan)
	if f.http != 0 {
		linger(rw, r, 2*int64(w.bodies.max))
	}
	return f
}

// readBody frees the body before the spans wait for their answer.
func (w *web) readBody(rw http.ResponseWriter, r *http.Request, scan func(body []byte) error) failure {
	body, err := w.bodies.read(rw, r)
	if body != nil {
		defer w.bodies.free(body)
	}
	if err == nil {
		if err = scan(body.data); err == nil {
			return failure{}
		}
	}
	switch {
	case errors.Is(err, errTooLarge):
		return failure{http.StatusRequestEntityTooLarge, codes.ResourceExhausted, "too_large", err.Error()}
	case errors.Is(err, errEncoding):
		return failure{http.StatusUnsupportedMediaType, codes.InvalidArgument, "content_encoding", err.Error()}
	case errors.Is(err, errNoRoom):
		return failure{http.StatusServiceUnavailable, codes.Unavailable, "overloaded", err.Error()}
	}
	return failure{http.StatusBadRequest, codes.InvalidArgument, "malformed", err.Error()}
}

// linger reads the rest of a refused body, up to most bytes and for as long as a request may
// take, and drops it. A client does not read while it sends: net/http would answer, wait half a
// second and reset the connection, and a slow client would lose the answer, and with it when to
// retry. Anything beyond most gets that half second.
func linger(rw http.ResponseWriter, r *http.Request, most int64) {
	if r.Header.Get("Expect") != "" {
		return // the client waits for the answer before it sends
	}
	_, _ = io.CopyN(io.Discard, r.Body, most)
	// Makes net/http wait, also for a client that asked to close the connection.
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
	_, _ = rw.Write(body) // on an error the client is gone
}

// elsewhere answers for paths that are not served. A request that may have held spans is counted.
func (w *web) elsewhere(rw http.ResponseWriter, r *http.Request) {
	asJSON := !isProtobuf(mediaType(r))
	f := failure{http.StatusNotFound, codes.Unimplemented, "path", "no such path: OTLP is read at /v1/traces, Zipkin's version 2 at /api/v2/spans"}
	if name := foreign(r.URL.Path); name != "" {
		f = failure{http.StatusNotImplemented, codes.Unimplemented, "protocol", name + " is not read: send OTLP to /v1/traces, or Zipkin's version 2 to /api/v2/spans"}
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		w.write(rw, asJSON, f.http, statusBody(asJSON, f.rpc, f.message))
		return
	}
	w.fail(rw, asJSON, f)
}

// foreign returns the name of the tracing protocol that uses a path; "" if none does.
func foreign(path string) string {
	switch path {
	case "/api/v1/spans":
		return "Zipkin's version 1"
	case "/api/traces":
		return "Jaeger's Thrift over HTTP"
	case "/v0.3/traces", "/v0.4/traces", "/v0.5/traces", "/v0.7/traces", "/v1.0/traces":
		return "the protocol of Datadog's agent"
	case "/v3/segments":
		return "the protocol of SkyWalking"
	}
	return ""
}

// tracesOnly answers for signals other than traces.
func tracesOnly(rw http.ResponseWriter, r *http.Request) {
	asJSON := mediaType(r) == typeJSON
	(&web{}).write(rw, asJSON, http.StatusNotImplemented, statusBody(asJSON, codes.Unimplemented, "this receiver takes traces only"))
}
