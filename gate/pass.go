package gate

import (
	"io"
	"net/http"
	"slices"
	"strings"
)

// pass sends a request that direct carries to the service, and the response to the client. It does
// what httputil.ReverseProxy does for such a request, which copies more of it.
// TestThePathsPassTheSame compares the two.
func (g *Gate) pass(w http.ResponseWriter, r *http.Request, v *visit) {
	out := r
	if v.span != nil || g.config.brownout.classes != nil {
		out = new(http.Request)
		*out = *r // the server keeps its own header
		out.Header = added(r.Header)
		if v.span != nil {
			v.span.inject(out.Header)
		}
		g.mark(v, out.Header)
	}
	informed := func(code int, header http.Header) {
		h := w.Header()
		add(h, header)
		w.WriteHeader(code)
		clear(h)
	}
	response, err := g.transport.direct.send(out, informed)
	if err != nil {
		g.unanswered(w, v, err)
		return
	}
	removeHopByHop(response.Header)
	v.response = response
	g.responding(v, response)
	if !g.answer(w, response) {
		panic(http.ErrAbortHandler) // the client must not take the response for complete
	}
	v.passed = true
}

// answer sends a response to the client. It returns false if the response broke off.
func (g *Gate) answer(w http.ResponseWriter, r *http.Response) bool {
	defer r.Body.Close()
	h := w.Header()
	add(h, r.Header)
	announced := len(r.Trailer)
	for name := range r.Trailer {
		h.Add("Trailer", name)
	}
	w.WriteHeader(r.StatusCode)
	flush := func() error { return nil }
	if r.ContentLength < 0 || isEvents(r) {
		flush = http.NewResponseController(w).Flush
	}
	if r.Body != http.NoBody && !g.copyBody(w, r.Body, flush) {
		return false
	}
	switch {
	case len(r.Trailer) == 0:
	case len(r.Trailer) == announced:
		_ = flush()
		add(h, r.Trailer)
	default:
		_ = flush()
		for name, values := range r.Trailer {
			for _, value := range values {
				h.Add(http.TrailerPrefix+name, value)
			}
		}
	}
	return true
}

// copyBody copies the body of a response and flushes after each piece, and before the first if the
// service has not sent it yet.
func (g *Gate) copyBody(w io.Writer, body io.Reader, flush func() error) bool {
	if b, ok := body.(*reply); ok && b.link.in.Buffered() == 0 && flush() != nil {
		return false
	}
	buffer := g.buffers.Get()
	defer g.buffers.Put(buffer)
	for {
		n, err := body.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil || flush() != nil {
				return false
			}
		}
		if err != nil {
			return err == io.EOF
		}
	}
}

func isEvents(r *http.Response) bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream")
}

// add adds values to a header.
func add(to, from http.Header) {
	for name, values := range from {
		if had, ok := to[name]; ok {
			values = slices.Concat(had, values)
		}
		to[name] = values
	}
}
