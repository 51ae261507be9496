package gate

import (
	"container/list"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// park is a listener that keeps idle client connections without the goroutine, the stack and the 8 KiB
// of buffers that the server needs for each. A connection on which the server has waited parkAfter for
// the next request is parked when the server closes it: epoll(7) watches it, and when the client sends
// something, Accept returns it like a new one.
type park struct {
	net.Listener
	patience time.Duration
	epoll    *os.File
	fd       int // of epoll
	ready    chan accepted
	stopped  chan struct{}

	mu     sync.Mutex // guards the fields below
	closed bool       // nothing is parked any more
	// parked has the parked connections by file descriptor; order lists the longest parked first.
	parked map[int]*list.Element
	order  list.List
	open   int
}

// accepted is a result of Accept.
type accepted struct {
	net.Conn
	err error
}

// parkAfter is how long a connection is idle before it is parked.
const parkAfter = 100 * time.Millisecond

// newPark returns a listener that parks the connections of l. Clients may pause for patience while
// they read.
func newPark(l net.Listener, patience time.Duration) (*park, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create an epoll instance: %w", err)
	}
	_ = unix.SetNonblock(fd, true) // so that the runtime waits for it instead of a thread
	p := &park{Listener: l, patience: patience, epoll: os.NewFile(uintptr(fd), "epoll"), fd: fd,
		ready: make(chan accepted), stopped: make(chan struct{}), parked: map[int]*list.Element{}}
	go p.accept()
	go p.watch()
	return p, nil
}

// accept passes on new connections until the listener is closed.
func (p *park) accept() {
	for {
		c, err := p.Listener.Accept()
		if err == nil {
			p.mu.Lock()
			p.open++
			p.mu.Unlock()
			c = &client{Conn: c, of: p, patience: p.patience}
		}
		if !p.offer(accepted{c, err}) {
			return
		}
	}
}

// offer passes a connection to Accept. It returns false if the listener is closed.
func (p *park) offer(a accepted) bool {
	select {
	case p.ready <- a:
		return true
	case <-p.stopped:
		if a.err == nil {
			_ = a.Close()
		}
		return false
	}
}

// Accept returns a new connection, or a parked one whose client has sent something.
func (p *park) Accept() (net.Conn, error) {
	select {
	case a := <-p.ready:
		return a.Conn, a.err
	case <-p.stopped:
		return nil, net.ErrClosed
	}
}

// Close stops the listener.
func (p *park) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.stopped:
	default:
		close(p.stopped)
	}
	return p.Listener.Close()
}

// watch passes a parked connection to Accept when its client has sent something, or has left.
func (p *park) watch() {
	defer p.release()
	raw, err := p.epoll.SyscallConn()
	if err != nil {
		return
	}
	events := make([]unix.EpollEvent, 64)
	for {
		n := 0
		var failed error
		err := raw.Read(func(fd uintptr) bool {
			n, failed = unix.EpollWait(int(fd), events, 0)
			return n > 0 || failed != nil && !errors.Is(failed, unix.EINTR)
		})
		if err != nil || failed != nil {
			return // the file is closed
		}
		for _, e := range events[:n] {
			if c := p.take(int(e.Fd)); c != nil {
				_ = c.SetReadDeadline(time.Time{})
				p.offer(accepted{c, nil})
			}
		}
	}
}

// put parks a connection. It returns false if it cannot.
func (p *park) put(c *client) (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	_ = c.control(func(fd int) {
		e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP, Fd: int32(fd)}
		if ok = unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &e) == nil; ok {
			c.fd, c.since = fd, time.Now()
			p.parked[fd] = p.order.PushBack(c)
		}
	})
	return ok
}

// take stops watching a parked connection and returns it; nil: it is not parked.
func (p *park) take(fd int) *client {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.parked[fd]; at != nil {
		return p.remove(at)
	}
	return nil
}

func (p *park) remove(at *list.Element) *client {
	c := p.order.Remove(at).(*client)
	delete(p.parked, c.fd)
	_ = unix.EpollCtl(p.fd, unix.EPOLL_CTL_DEL, c.fd, nil)
	return c
}

// sweep closes the connections that have been parked for longer than d.
func (p *park) sweep(now time.Time, d time.Duration) {
	p.mu.Lock()
	var old []*client
	for at := p.order.Front(); at != nil && now.Sub(at.Value.(*client).since) > d; at = p.order.Front() {
		old = append(old, p.remove(at))
	}
	p.mu.Unlock()
	for _, c := range old {
		_ = c.Close()
	}
}

// release closes the parked connections and parks no more.
func (p *park) release() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.sweep(time.Now(), -time.Hour)
	_ = p.epoll.Close()
}

// left counts a connection that was closed.
func (p *park) left() {
	p.mu.Lock()
	p.open--
	p.mu.Unlock()
}

// connections returns the number of open client connections, parked ones included.
func (p *park) connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}
