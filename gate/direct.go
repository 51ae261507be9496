package gate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// direct sends requests without a body to the service over HTTP/1.1. It writes the request and
// reads the response on the goroutine of the request, where http.Transport has two more for each
// connection: handing over between them is most of what a small request costs. net/http parses the
// messages.
//
// It sends only requests that may be sent twice (RFC 9110, section 9.2.2). No goroutine watches an idle
// connection, so the service may close it just as direct sends a request on it. direct then sends the
// request again, over a new connection.
type direct struct {
	host    string // in the URL of the service
	address string
	dialer  *net.Dialer
	// timeout is how long the service may take until its response begins.
	timeout time.Duration

	mu   sync.Mutex
	idle []*link // the one that was used last is at the end
}

const (
	// maxIdle is the number of idle connections that are kept.
	maxIdle = 4096
	// maxResponseHeader and maxInformational bound what the service may send before its response.
	maxResponseHeader = 1 << 20
	maxInformational  = 5
)

func newDirect(c *parsed) *direct {
	address := c.to.Host
	if c.to.Port() == "" {
		address = net.JoinHostPort(c.to.Hostname(), "80")
	}
	return &direct{host: c.to.Host, address: address, dialer: dialer(c), timeout: c.Upstream}
}

// carries reports whether direct can send r.
func (d *direct) carries(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return (r.Body == nil || r.Body == http.NoBody) && len(r.Header["Upgrade"]) == 0 && len(r.Trailer) == 0 &&
			plainHost(r.Host) && plainTarget(r.URL)
	}
	return false
}

// send sends a request and returns the response. It calls informed for each informational response
// before that.
func (d *direct) send(r *http.Request, informed func(int, http.Header)) (*http.Response, error) {
	if l := d.take(); l != nil {
		response, err := l.ask(r, informed)
		if !errors.Is(err, errClosed) {
			return response, err
		}
	}
	l, err := d.dial(r.Context())
	if err != nil {
		return nil, err
	}
	return l.ask(r, informed)
}

func (d *direct) dial(ctx context.Context) (*link, error) {
	c, err := d.dialer.DialContext(ctx, "tcp", d.address)
	if err != nil {
		return nil, err
	}
	l := &link{Conn: c, of: d}
	l.in, l.out = bufio.NewReader(l), bufio.NewWriter(c)
	return l, nil
}

// take returns an idle connection that is still open, or nil.
func (d *direct) take() *link {
	for {
		d.mu.Lock()
		n := len(d.idle)
		if n == 0 {
			d.mu.Unlock()
			return nil
		}
		l := d.idle[n-1]
		d.idle[n-1], d.idle = nil, d.idle[:n-1]
		d.mu.Unlock()
		if l.quiet() {
			return l
		}
		_ = l.Close()
	}
}

// give keeps an idle connection.
func (d *direct) give(l *link) {
	l.since, l.used = time.Now(), true
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.idle) >= maxIdle {
		_ = l.Close()
		return
	}
	d.idle = append(d.idle, l)
}

// sweep closes connections that have been idle for too long.
func (d *direct) sweep(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := 0
	for old < len(d.idle) && now.Sub(d.idle[old].since) > upstreamIdle {
		_ = d.idle[old].Close()
		old++
	}
	if old > 0 {
		kept := copy(d.idle, d.idle[old:])
		clear(d.idle[kept:])
		d.idle = d.idle[:kept]
	}
}

// link is a connection to the service. One request at a time uses it.
type link struct {
	net.Conn
	of   *direct
	in   *bufio.Reader
	out  *bufio.Writer
	left int64 // bytes that the service may still send before the header of its response is complete
	// used: the connection has carried a request, and became idle at the time since.
	used  bool
	since time.Time
}

var (
	// errClosed: the service closed an idle connection before it saw the request.
	errClosed = errors.New("the service closed an idle connection")
	errHeader = fmt.Errorf("the header of the response has more than %d bytes", maxResponseHeader)
)

// Read bounds the header of a response.
func (l *link) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errHeader
	}
	n, err := l.Conn.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// quiet reports whether an idle connection is open and the service has sent nothing on it: direct would
// take anything that the service sends without a request for the response to the next one.
func (l *link) quiet() bool {
	if time.Since(l.since) > upstreamIdle {
		return false
	}
	raw, err := l.Conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	err = raw.Control(func(fd uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		quiet = n == 0 && err == nil
	})
	return err == nil && quiet
}

// ask sends a request and returns the response. When its body ends, the connection is idle again.
func (l *link) ask(r *http.Request, informed func(int, http.Header)) (*http.Response, error) {
	ctx := r.Context()
	_ = l.SetReadDeadline(time.Now().Add(l.of.timeout))
	stop := context.AfterFunc(ctx, func() { _ = l.SetDeadline(time.Unix(1, 0)) })
	response, err := l.exchange(r, informed)
	if err != nil {
		stop()
		_ = l.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	body := &reply{ReadCloser: response.Body, link: l, ctx: ctx, stop: stop, reuse: !response.Close}
	if response.ContentLength == 0 || r.Method == http.MethodHead || response.Body == http.NoBody {
		body.end(true)
		response.Body = http.NoBody
		return response, nil
	}
	_ = l.SetReadDeadline(time.Time{})
	if ctx.Err() != nil { // the line above may have undone the deadline of an ended request
		_ = l.SetDeadline(time.Unix(1, 0))
	}
	response.Body = body
	return response, nil
}

// exchange writes a request and reads the header of the response.
func (l *link) exchange(r *http.Request, informed func(int, http.Header)) (*http.Response, error) {
	l.left = maxResponseHeader
	unsent := writeHead(l.out, r, l.of.host)
	// A service that closes the connection while it is written to may have sent a response before.
	if _, err := l.in.Peek(1); err != nil {
		if l.used && !isTimeout(err) {
			return nil, errClosed
		}
		return nil, err
	}
	for range maxInformational + 1 {
		response, err := http.ReadResponse(l.in, r)
		switch {
		case err != nil:
			return nil, err
		case response.StatusCode == http.StatusSwitchingProtocols:
			return nil, errors.New("the service switches the protocol without being asked")
		case response.StatusCode >= http.StatusOK:
			l.left = math.MaxInt64
			response.Close = response.Close || unsent != nil
			return response, nil
		}
		informed(response.StatusCode, response.Header)
	}
	return nil, fmt.Errorf("more than %d informational responses", maxInformational)
}

// reply is the body of a response.
type reply struct {
	io.ReadCloser
	link  *link
	ctx   context.Context
	stop  func() bool
	reuse bool
	ended bool
}

// Read reads a piece of the body. At its end the connection serves the next request.
func (b *reply) Read(p []byte) (int, error) {
	if b.ended {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		b.end(true)
	case err != nil:
		b.end(false)
		if b.ctx.Err() != nil {
			err = b.ctx.Err()
		}
	}
	return n, err
}

// Close ends the body. A connection on which a response is not read to its end is closed.
func (b *reply) Close() error {
	b.end(false)
	return nil
}

// end gives the connection back if the response was read completely and nothing follows it.
func (b *reply) end(whole bool) {
	if b.ended {
		return
	}
	b.ended = true
	if b.stop() && whole && b.reuse && b.link.in.Buffered() == 0 {
		b.link.of.give(b.link)
		return
	}
	_ = b.link.Close()
}
