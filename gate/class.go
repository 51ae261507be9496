package gate

import (
	"cmp"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
)

// classes maps a request to the rank of its class: by the value of a header if it is one of those
// that were declared, else by the longest declared prefix of its path. It never stores a value that
// a client sent.
type classes struct {
	header string
	names  []string
	rank   map[string]int
	paths  []prefix // the longest first
	other  int
}

// prefix is a declared beginning of a path, without the last "/", and the rank of its class.
type prefix struct {
	path string
	rank int
}

const (
	// maxClasses bounds the number of metric series.
	maxClasses = 16
	// maxPaths bounds the prefixes, which are tried one after the other.
	maxPaths = 64
)

// parseClasses reads the flags --class and --class-path; either may be empty.
func parseClasses(header, paths string) (c classes, err error) {
	c = classes{rank: map[string]int{}}
	if header != "" {
		err = c.declare(header)
	}
	if err == nil && paths != "" {
		err = c.declarePaths(paths, header != "")
	}
	switch {
	case err != nil:
		return c, err
	case len(c.names) > maxClasses:
		return c, fmt.Errorf("read --class: %d classes, at most %d", len(c.names), maxClasses)
	case len(c.names) == 0:
		c.names = []string{"all"}
	}
	c.other = max(0, len(c.names)-2)
	if normal, ok := c.rank["normal"]; ok {
		c.other = normal
	}
	return c, nil
}

// declare reads "HEADER=A,B,C".
func (c *classes) declare(text string) error {
	header, values, ok := strings.Cut(text, "=")
	c.header = http.CanonicalHeaderKey(strings.TrimSpace(header))
	if !ok || c.header == "" || strings.ContainsAny(c.header, " :\t\r\n") {
		return fmt.Errorf("read --class %q: no header", text)
	}
	for name := range strings.SplitSeq(values, ",") {
		name = strings.TrimSpace(name)
		if _, twice := c.rank[name]; name == "" || twice {
			return fmt.Errorf("read --class %q: the value %q is empty or written twice", text, name)
		}
		c.add(name)
	}
	return nil
}

// declarePaths reads "/PATH=CLASS,…". known: the classes were declared before.
func (c *classes) declarePaths(text string, known bool) error {
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		i := strings.LastIndexByte(item, '=')
		if i < 1 || i == len(item)-1 || item[0] != '/' {
			return fmt.Errorf("read --class-path %q: %q is not /PATH=CLASS", text, item)
		}
		at, name := strings.TrimSuffix(path.Clean(item[:i]), "/"), item[i+1:]
		if _, ok := c.rank[name]; !ok {
			if known {
				return fmt.Errorf("read --class-path %q: %q is no value of --class", text, name)
			}
			c.add(name)
		}
		if slices.ContainsFunc(c.paths, func(p prefix) bool { return p.path == at }) {
			return fmt.Errorf("read --class-path %q: the path %q is written twice", text, item[:i])
		}
		c.paths = append(c.paths, prefix{at, c.rank[name]})
	}
	if len(c.paths) > maxPaths {
		return fmt.Errorf("read --class-path: %d paths, at most %d", len(c.paths), maxPaths)
	}
	slices.SortStableFunc(c.paths, func(a, b prefix) int { return cmp.Compare(len(b.path), len(a.path)) })
	return nil
}

// add appends a class, less important than those before it.
func (c *classes) add(name string) {
	c.rank[name] = len(c.names)
	c.names = append(c.names, name)
}

// of returns the rank of a request's class.
func (c *classes) of(r *http.Request) int {
	if c.header != "" {
		if values := r.Header[c.header]; len(values) > 0 {
			if rank, ok := c.rank[values[0]]; ok {
				return rank
			}
		}
	}
	if len(c.paths) == 0 {
		return c.other
	}
	at := r.URL.Path
	if strings.Contains(at, "//") || strings.Contains(at, "/.") { // a service may resolve these
		at = path.Clean(at)
	}
	for _, p := range c.paths {
		if rest, ok := strings.CutPrefix(at, p.path); ok && (rest == "" || rest[0] == '/') {
			return p.rank
		}
	}
	return c.other
}

// isRetry reports whether the client, or a proxy before the gate, says in a header that this
// request is a retry.
func isRetry(h http.Header) bool {
	return above(h["X-Envoy-Attempt-Count"], 1) || above(h["Grpc-Previous-Rpc-Attempts"], 0)
}

// above reports whether a header contains a number greater than n. It reads at most nine digits.
func above(values []string, n int) bool {
	if len(values) == 0 || len(values[0]) == 0 || len(values[0]) > 9 {
		return false
	}
	v := 0
	for _, d := range values[0] {
		if d < '0' || d > '9' {
			return false
		}
		v = 10*v + int(d-'0')
	}
	return v > n
}
