package rig

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// ErrAnswer says that a service answered, but not what was asked for.
var ErrAnswer = errors.New("unexpected answer")

// readyWithin is how long a service may take to start.
const readyWithin = time.Minute

// Connection is one that is used again.
type Connection struct {
	net.Conn
	In *bufio.Reader
}

// Connections is a pool of at most so many.
type Connections struct {
	open func(context.Context) (net.Conn, error)
	// slots bounds how many are in use.
	slots chan struct{}

	mu     sync.Mutex
	idle   []*Connection
	closed bool
}

// NewConnections makes a pool of at most so many connections, which open opens.
func NewConnections(most int, open func(context.Context) (net.Conn, error)) *Connections {
	return &Connections{open: open, slots: make(chan struct{}, most)}
}

// Use calls f with a connection, and waits for one until ctx ends. One on which
// f failed is closed: an answer may still come on it.
func (p *Connections) Use(ctx context.Context, f func(*Connection) error) error {
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

func (p *Connections) take(ctx context.Context) (*Connection, error) {
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
	return &Connection{Conn: c, In: bufio.NewReader(c)}, nil
}

func (p *Connections) give(c *Connection, good bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !good || p.closed {
		c.Close()
		return
	}
	p.idle = append(p.idle, c)
}

// Close closes those that are idle now, and the others once they are given back.
func (p *Connections) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		c.Close()
	}
	p.idle = nil
}

// Dial connects; the deadline of ctx holds for the first exchange too.
func Dial(ctx context.Context, address string) (net.Conn, error) {
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

// FreeAddress returns a loopback address that nobody listens on now.
func FreeAddress() (string, error) {
	all, err := FreeAddresses(1)
	if err != nil {
		return "", err
	}
	return all[0], nil
}

// FreeAddresses returns different loopback addresses that nobody listens on now. Their
// ports lie below those from which the kernel chooses for connections.
func FreeAddresses(n int) (out []string, err error) {
	for range 1000 {
		if len(out) == n {
			return out, nil
		}
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))); err == nil {
			defer l.Close() // when all are known, so that they differ
			out = append(out, l.Addr().String())
		}
	}
	return nil, fmt.Errorf("find a free port: %w", err)
}
