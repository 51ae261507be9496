package gate

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"github.com/trimtab/trimtab/planner/admission"
)

// newProxy returns the proxy of g. It passes on the client's Host and query as they are, adds to
// X-Forwarded-For, and keeps the X-Forwarded-Host and -Proto headers of proxies before it.
func newProxy(g *Gate) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = g.config.to.Scheme, g.config.to.Host
			r.Out.Host, r.Out.URL.RawQuery = r.In.Host, r.In.URL.RawQuery
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
			r.SetXForwarded()
			for _, name := range []string{"Forwarded", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if told, ok := r.In.Header[name]; ok {
					r.Out.Header[name] = told
				}
			}
			if strings.Contains(strings.ToLower(r.Out.Header.Get("Upgrade")), "h2c") {
				// Requests inside such a connection would bypass the gate.
				for _, name := range []string{"Connection", "Upgrade", "Http2-Settings"} {
					r.Out.Header.Del(name)
				}
			}
			r.Out.Trailer = r.In.Trailer // the trailer gets its values when the body ends
			if v := visitOf(r.In.Context()); v != nil {
				if v.span != nil {
					v.span.inject(r.Out.Header)
				}
				g.mark(v, r.Out.Header)
			}
		},
		Transport: g.transport,
		ModifyResponse: func(r *http.Response) error {
			if v := visitOf(r.Request.Context()); v != nil {
				v.response = r
				g.responding(v, r)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if v := visitOf(r.Context()); v != nil {
				g.unanswered(w, v, err)
			} else {
				w.WriteHeader(http.StatusBadGateway)
			}
		},
		ErrorLog:   quietLog(),
		BufferPool: &g.buffers,
	}
}

// quietLog discards what net/http logs about single connections: clients cause these errors, and
// the metrics count them.
func quietLog() *log.Logger { return log.New(io.Discard, "", 0) }

// transport sends gRPC over HTTP/2. It sends all other requests over HTTP/1.1, unless the
// configuration says that the service speaks HTTP/2.
type transport struct {
	direct       *direct // nil: the service speaks TLS or HTTP/2
	http1, http2 *http.Transport
	always2      bool
}

// upstreamIdle is how long an idle connection to the service is kept. It is shorter than the
// keep-alive of common servers (Node.js: 5 s), which could otherwise close a connection while a
// request is on its way.
const upstreamIdle = 4 * time.Second

func dialer(c *parsed) *net.Dialer {
	return &net.Dialer{Timeout: min(c.Upstream, 5*time.Second), KeepAlive: 30 * time.Second}
}

func newTransport(g *Gate) *transport {
	with := func(set func(*http.Protocols)) *http.Transport {
		p := new(http.Protocols)
		set(p)
		return &http.Transport{
			Protocols:             p,
			DialContext:           dialer(g.config).DialContext,
			DisableCompression:    true,
			MaxIdleConnsPerHost:   4096,
			IdleConnTimeout:       upstreamIdle,
			ResponseHeaderTimeout: g.config.Upstream,
			TLSHandshakeTimeout:   5 * time.Second,
			ExpectContinueTimeout: time.Second,
			// All requests share one HTTP/2 connection. If its peer is gone, the ping finds out
			// before every request times out.
			HTTP2: &http.HTTP2Config{SendPingTimeout: g.config.Upstream, PingTimeout: min(g.config.Upstream, 15*time.Second)},
		}
	}
	t := &transport{always2: g.config.HTTP2,
		http1: with(func(p *http.Protocols) { p.SetHTTP1(true) }),
		http2: with(func(p *http.Protocols) { p.SetUnencryptedHTTP2(true); p.SetHTTP2(true) })}
	if g.config.to.Scheme == "http" && !g.config.HTTP2 {
		t.direct = newDirect(g.config)
	}
	return t
}

// RoundTrip sends one request.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if v := visitOf(r.Context()); t.always2 || v != nil && v.grpc {
		return t.http2.RoundTrip(r)
	}
	return t.http1.RoundTrip(r)
}

// buffers is a pool of buffers for copying bodies.
type buffers struct{ pool sync.Pool }

const bufferSize = 16 << 10

// Get returns a buffer.
func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[bufferSize]byte); ok {
		return p[:]
	}
	return new([bufferSize]byte)[:]
}

// Put returns a buffer to the pool.
func (b *buffers) Put(p []byte) { b.pool.Put((*[bufferSize]byte)(p)) }

// unanswered sends an error response to the client if the service did not answer.
func (g *Gate) unanswered(w http.ResponseWriter, v *visit, err error) {
	v.err = err
	status, code, text := http.StatusBadGateway, "14", "the service cannot be reached"
	switch broken := v.upload.broken(); {
	case broken != 0:
		status, code, text = broken, "1", "the rest of the request did not come"
	case isTimeout(err):
		status, code, text = http.StatusGatewayTimeout, "4", "the service did not answer in time"
	}
	if v.grpc {
		trailersOnly(w, code, text)
		return
	}
	plain(w, status, text)
}

// result returns how an admitted request ended; ctx is done if its client left.
func (v *visit) result(ctx context.Context) admission.Result {
	switch r := v.response; {
	case errors.Is(v.err, context.Canceled), r == nil && v.upload.broken() != 0, r != nil && !v.passed && ctx.Err() != nil:
		return admission.Abandoned
	case v.err != nil && isTimeout(v.err):
		return admission.TimedOut
	case r == nil || !v.passed || r.StatusCode >= 500 && r.StatusCode != http.StatusNotImplemented:
		return admission.Failed
	case v.grpc && grpcFailed(r):
		return admission.Failed
	}
	return admission.Answered
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// grpcFailed reports whether the gRPC status counts as a server error: DEADLINE_EXCEEDED,
// RESOURCE_EXHAUSTED, INTERNAL or UNAVAILABLE.
func grpcFailed(r *http.Response) bool {
	s := r.Trailer.Get("Grpc-Status")
	if s == "" {
		s = r.Header.Get("Grpc-Status")
	}
	return s == "4" || s == "8" || s == "13" || s == "14"
}

// plain sends a response with one line of text.
func plain(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}

// trailersOnly sends a gRPC response that has a status and no message.
func trailersOnly(w http.ResponseWriter, code, text string) {
	h := w.Header()
	h.Set("Content-Type", "application/grpc")
	h.Set("Grpc-Status", code)
	h.Set("Grpc-Message", strings.ReplaceAll(text, "%", "%25"))
	w.WriteHeader(http.StatusOK)
}
