package gate

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// brownout is a header that asks the service for a cheaper answer. Requests of its classes get it
// while requests of their class are about to be refused.
type brownout struct {
	name, value string
	classes     []bool // by rank; nil: no brownout
}

// parseBrownout reads the flags --brownout-header and --brownout-classes. Without classes the header is
// for all but the most important one, or for the only one.
func parseBrownout(header, names string, of *classes) (b brownout, err error) {
	if header == "" {
		if names != "" {
			return b, fmt.Errorf("read --brownout-classes %q: no --brownout-header", names)
		}
		return b, nil
	}
	name, value, ok := strings.Cut(header, ":")
	name, b.value = strings.TrimSpace(name), strings.TrimSpace(value)
	b.name = http.CanonicalHeaderKey(name)
	if !ok || name == "" || strings.ContainsFunc(name, noName) || strings.ContainsFunc(b.value, noValue) || reserved(b.name) {
		return b, fmt.Errorf("read --brownout-header %q: no header that can be added", header)
	}
	b.classes = make([]bool, len(of.names))
	if names == "" {
		for i := range b.classes {
			b.classes[i] = i > 0 || len(b.classes) == 1
		}
		return b, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		i := slices.Index(of.names, strings.TrimSpace(name))
		if i < 0 {
			return b, fmt.Errorf("read --brownout-classes %q: %q is not one of the classes %s", names, name, strings.Join(of.names, ", "))
		}
		b.classes[i] = true
	}
	return b, nil
}

// reserved reports whether a header means something to the gate or to HTTP itself.
func reserved(name string) bool {
	switch name {
	case "Connection", "Content-Length", "Host", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Traceparent", "Tracestate":
		return true
	}
	return false
}

// noName and noValue report whether a byte is not allowed in the header's name or value.
func noName(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
}
func noValue(r rune) bool { return r < ' ' || r > '~' }

// brown decides whether an admitted request asks for a cheaper answer.
func (g *Gate) brown(v *visit) {
	if b := &g.config.brownout; b.classes == nil || !b.classes[v.Class] {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if v.brown = g.controller.Strained(v.Class); v.brown {
		g.classed[v.Class].brown++
	}
}

// mark sets the brownout header in h, or removes one that the client sent: only the gate asks the
// service for cheaper answers. h must be a copy of the client's header.
func (g *Gate) mark(v *visit, h http.Header) {
	b := &g.config.brownout
	if b.classes == nil {
		return
	}
	if delete(h, b.name); v.brown {
		h[b.name] = []string{b.value}
	}
}
