// Package listen opens listeners whose number of connections is bounded, so that peers
// that open connections without end take no more than their share of the process.
//
//	l, err := listen.TCP("127.0.0.1:4317", 4096)
package listen

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// TCP opens addr with at most n connections at a time.
func TCP(addr string, n int) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return Limit(l, n), nil
}

// Limit returns l with at most n connections at a time.
func Limit(l net.Listener, n int) *Limited {
	return &Limited{Listener: l, slots: make(chan struct{}, n), closed: make(chan struct{})}
}

// Limited accepts a connection when a slot is free; the others wait in the kernel's queue.
type Limited struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

// Accept waits for a slot, then for a connection.
func (l *Limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slot{Conn: c, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

// Close ends Accept; open connections go on.
func (l *Limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// Drain returns when no connection is open, or when ctx ends; further ones are not accepted.
func (l *Limited) Drain(ctx context.Context) {
	for range cap(l.slots) {
		select {
		case l.slots <- struct{}{}:
		case <-ctx.Done():
		}
	}
}

// slot is a connection that gives its slot back once.
type slot struct {
	net.Conn
	free func()
}

// NetConn returns the connection that the listener accepted.
func (c *slot) NetConn() net.Conn { return c.Conn }

func (c *slot) Close() error {
	defer c.free()
	return c.Conn.Close()
}
