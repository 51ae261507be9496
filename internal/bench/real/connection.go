package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"sync"
	"time"
)

// errAnswer says that a service answered, but not what was asked for.
var errAnswer = errors.New("unexpected answer")

// ready is how long a service may take to start.
const ready = time.Minute

// connection is one that is used again.
type connection struct {
	net.Conn
	in *bufio.Reader
}

// connections is a pool of at most so many.
type connections struct {
	open func(context.Context) (net.Conn, error)
	// slots bounds how many are in use.
	slots chan struct{}

	mu     sync.Mutex
	idle   []*connection
	closed bool
}

func newConnections(most int, open func(context.Context) (net.Conn, error)) *connections {
	return &connections{open: open, slots: make(chan struct{}, most)}
}

// use calls f with a connection, and waits for one until ctx ends. One on which
// f failed is closed: an answer may still come on it.
func (p *connections) use(ctx context.Context, f func(*connection) error) error {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait for a connection: %w", ctx.Err())
	}
	defer func() { <-p.slots }()
	c, err := p.take(ctx)
	if err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok {
		err = c.SetDeadline(deadline)
	}
	if err == nil {
		err = f(c)
	}
	p.give(c, err == nil)
	return err
}

func (p *connections) take(ctx context.Context) (*connection, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	c, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	return &connection{Conn: c, in: bufio.NewReader(c)}, nil
}

func (p *connections) give(c *connection, good bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !good || p.closed {
		c.Close()
		return
	}
	p.idle = append(p.idle, c)
}

func (p *connections) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		c.Close()
	}
	p.idle = nil
}

// dial connects; the deadline of ctx holds for the first exchange too.
func dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(deadline); err != nil {
			c.Close()
			return nil, fmt.Errorf("connect: %w", err)
		}
	}
	return c, nil
}

// freeAddress returns a loopback address that nobody listens on now. Its port lies
// below those from which the kernel chooses for connections.
func freeAddress() (string, error) {
	var last error
	for range 1000 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String(), nil
		}
		last = err
	}
	return "", fmt.Errorf("find a free port: %w", last)
}

// lookup finds a program that may be beside the search path of plain users.
func lookup(name, debian string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	path := filepath.Join("/usr/sbin", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("no %s here: apt-get install --no-install-recommends %s: %w", name, debian, err)
	}
	return path, nil
}

func currentUser() (string, error) {
	u, err := user.Current()
	if err != nil {
		return "", fmt.Errorf("find own user: %w", err)
	}
	return u.Username, nil
}
