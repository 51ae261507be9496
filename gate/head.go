package gate

import (
	"bufio"
	"cmp"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
)

// writeHead writes a request to the service: what the client sent, without the headers that concern
// its connection, and with those that a proxy adds. The bytes are the same as if http.Request.Write
// wrote the header that httputil.ReverseProxy makes, but writeHead makes no such header.
//
// The target, the host, and the names and values of the header need no escaping: carries and net/http's
// server have checked them. host is that of the service, for a client that names none.
func writeHead(w *bufio.Writer, r *http.Request, host string) error {
	write := func(texts ...string) {
		for _, text := range texts {
			_, _ = w.WriteString(text) // Flush returns the error
		}
	}
	write(r.Method, " ", r.URL.RequestURI(), " HTTP/1.1\r\nHost: ", cmp.Or(r.Host, host), "\r\n")
	connection := r.Header["Connection"]
	if agent := r.Header["User-Agent"]; len(agent) > 0 && agent[0] != "" && !lists(connection, "User-Agent") {
		write("User-Agent: ", agent[0], "\r\n")
	}
	var room [32]string
	names := append(room[:0], "X-Forwarded-For")
	for name := range r.Header {
		if !isHop(name) && !isRewritten(name) && (isForwarded(name) || !lists(connection, name)) {
			names = append(names, name)
		}
	}
	for _, name := range []string{"X-Forwarded-Host", "X-Forwarded-Proto"} {
		if _, told := r.Header[name]; !told {
			names = append(names, name)
		}
	}
	if lists(r.Header["Te"], "trailers") {
		names = append(names, "Te")
	}
	slices.Sort(names)
	for _, name := range names {
		switch values, told := r.Header[name]; {
		case name == "X-Forwarded-For":
			write(name, ": ")
			// It stays even if the client lists it in Connection.
			for _, before := range values {
				write(before, ", ")
			}
			client, _, err := net.SplitHostPort(r.RemoteAddr)
			if err != nil {
				client = r.RemoteAddr
			}
			write(client, "\r\n")
		case name == "Te":
			write("Te: trailers\r\n")
		case !told && name == "X-Forwarded-Host":
			write(name, ": ", r.Host, "\r\n")
		case !told:
			write(name, ": http\r\n")
		default:
			for _, value := range values {
				write(name, ": ", textproto.TrimString(value), "\r\n")
			}
		}
	}
	write("\r\n")
	return w.Flush()
}

// isRewritten reports whether writeHead writes a header by itself, or has none to write.
func isRewritten(name string) bool {
	return name == "Content-Length" || name == "Host" || name == "User-Agent" || name == "X-Forwarded-For"
}

// isForwarded reports whether a header says which proxies a request has passed. The service gets such a
// header even if the client lists it in Connection.
func isForwarded(name string) bool {
	return name == "Forwarded" || name == "X-Forwarded-For" || name == "X-Forwarded-Host" || name == "X-Forwarded-Proto"
}

// isHop reports whether a header concerns a single connection.
//
// Source: RFC 9110, section 7.6.1, and RFC 2616, section 13.5.1, for older programs.
func isHop(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

// added returns a copy of a client's header, to which the gate can add: it has no Connection header any
// more, in which the client could list what the gate adds so that writeHead leaves it out.
func added(client http.Header) http.Header {
	h := maps.Clone(client)
	for _, list := range client["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			if name = http.CanonicalHeaderKey(textproto.TrimString(name)); !isHop(name) && !isForwarded(name) {
				delete(h, name)
			}
		}
	}
	delete(h, "Connection")
	return h
}

// lists reports whether a word is in a list that a header has, in one value or several.
func lists(values []string, word string) bool {
	for _, list := range values {
		for item := range strings.SplitSeq(list, ",") {
			if strings.EqualFold(textproto.TrimString(item), word) {
				return true
			}
		}
	}
	return false
}

// removeHopByHop removes the headers that concern a single connection, and those that Connection
// names.
func removeHopByHop(h http.Header) {
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			if name = textproto.TrimString(name); name != "" {
				h.Del(name)
			}
		}
	}
	for name := range h {
		if isHop(name) {
			delete(h, name)
		}
	}
}

// plainHost reports whether a host can be written as it is: net/http changes those with a zone or
// with characters beyond ASCII, and refuses others.
func plainHost(host string) bool {
	return !strings.ContainsFunc(host, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("-.:[]_", c))
	})
}

// plainTarget reports whether a target can stand in the first line of a request as it is. The URL
// escapes what the path has, but not what the query has.
func plainTarget(u *url.URL) bool {
	return u.Opaque == "" && !strings.ContainsFunc(u.RawQuery, func(c rune) bool { return c <= ' ' || c >= 0x7f })
}
