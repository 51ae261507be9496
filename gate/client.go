package gate

import (
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// client is the connection of a client. It tells the park when it is idle, and gives the client a
// time limit for reading what the gate writes.
type client struct {
	net.Conn
	of       *park
	patience time.Duration
	// fd is the file descriptor of a parked connection, since when it was parked. The park's lock
	// guards both.
	fd    int
	since time.Time

	mu sync.Mutex // guards the fields below
	// idle: the server has answered a request. waits: the server waits for the next request and has
	// read nothing of it. expired: that wait timed out.
	idle, waits, expired, closed bool
}

// serverBuffer is the size of net/http's read buffer. If the server asks for less while it waits
// for a request, it has read the beginning of one: parking the connection would lose that.
const serverBuffer = 4096

// state is the server's ConnState.
func state(c net.Conn, s http.ConnState) {
	if c, ok := c.(*client); ok {
		c.mu.Lock()
		c.idle, c.waits, c.expired = s == http.StateIdle, false, false
		c.mu.Unlock()
	}
}

// SetReadDeadline shortens the time for which the server waits for the next request. Over HTTP/2
// the server sets no deadline while a connection is idle.
func (c *client) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	if c.waits = c.idle && !t.IsZero(); c.waits {
		if park := time.Now().Add(parkAfter); park.Before(t) {
			t = park
		}
	} else {
		c.idle = false
	}
	c.mu.Unlock()
	return c.Conn.SetReadDeadline(t)
}

// Read notes whether the server's wait for the next request timed out.
func (c *client) Read(p []byte) (int, error) {
	if len(p) != serverBuffer {
		c.begun()
	}
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.begun()
	} else if errors.Is(err, os.ErrDeadlineExceeded) {
		c.mu.Lock()
		c.expired = c.waits
		c.mu.Unlock()
	}
	return n, err
}

// begun gives the client time to send the rest of a request of which the server has some bytes.
func (c *client) begun() {
	c.mu.Lock()
	waited := c.waits
	c.waits = false
	c.mu.Unlock()
	if waited {
		_ = c.Conn.SetReadDeadline(time.Now().Add(headerTimeout))
	}
}

// Write writes p. The client may pause for c.patience while it reads: if the kernel has sent
// nothing to it in that time, Write fails.
func (c *client) Write(p []byte) (n int, err error) {
	for before := -1; ; {
		_ = c.Conn.SetWriteDeadline(time.Now().Add(c.patience))
		var m int
		m, err = c.Conn.Write(p[n:])
		if n += m; !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		// A large part of the buffer must be free before the kernel takes more, so that a slow
		// client may seem to pause.
		now := c.unsent()
		if m == 0 && before >= 0 && now >= before {
			return n, err
		}
		before = now
	}
}

// unsent returns how many bytes the kernel has to send to the client, 0 if that is unknown.
func (c *client) unsent() (n int) {
	_ = c.control(func(fd int) { n, _ = unix.IoctlGetInt(fd, unix.TIOCOUTQ) })
	return n
}

// Close parks the connection if the server closes it because it was idle, and else closes it.
func (c *client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits && c.expired {
		c.waits, c.expired = false, false
		if c.of.put(c) {
			return nil
		}
	}
	if !c.closed {
		c.closed = true
		c.of.left()
	}
	return c.Conn.Close()
}

// control calls f with the file descriptor of the connection.
func (c *client) control(f func(fd int)) error {
	inner := c.Conn
	if n, ok := inner.(interface{ NetConn() net.Conn }); ok {
		inner = n.NetConn()
	}
	s, ok := inner.(syscall.Conn)
	if !ok {
		return errors.ErrUnsupported
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { f(int(fd)) })
}
