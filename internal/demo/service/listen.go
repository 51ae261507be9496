package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab/internal/listen"
)

// open opens the address, or borrows the socket that [Lend] lends at cfg.Inherit and accepts
// one connection at a time, so that connections wait in the kernel's one queue for the next free
// worker. SO_REUSEPORT would spread them at random over one queue per worker, and lose a queue
// with its worker.
func open(ctx context.Context, cfg *Config) (net.Listener, error) {
	if cfg.Inherit == "" {
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", cfg.Listen)
		if err != nil {
			return nil, fmt.Errorf("listen on %s: %w", cfg.Listen, err)
		}
		return l, nil
	}
	l, err := borrow(ctx, cfg.Inherit)
	if err != nil {
		return nil, fmt.Errorf("borrow socket from %s: %w", cfg.Inherit, err)
	}
	return listen.Limit(l, 1), nil
}

// borrow receives a listening socket (SCM_RIGHTS, unix(7)).
func borrow(ctx context.Context, path string) (net.Listener, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := c.(*net.UnixConn).ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errNoSocket, err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(errNoSocket, err)
	}
	f := os.NewFile(uintptr(fds[0]), "listener")
	defer f.Close()
	return net.FileListener(f)
}

var errNoSocket = errors.New("no socket in the message")

// Lender lends a listening socket to worker processes. It accepts no connections itself.
type Lender struct {
	tcp   *net.TCPListener
	unix  *net.UnixListener
	ended sync.WaitGroup
}

// Lend listens on the TCP address addr and passes that socket to every process that connects to
// the Unix socket at path, which it creates.
func Lend(addr, path string) (*Lender, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	u, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lend socket at %s: %w", path, err), l.Close())
	}
	lender := &Lender{tcp: l.(*net.TCPListener), unix: u}
	f, err := lender.tcp.File()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lend socket at %s: %w", path, err), lender.Close())
	}
	lender.ended.Go(func() {
		defer f.Close()
		for {
			c, err := u.AcceptUnix()
			if err != nil {
				return
			}
			// A borrower that went away gets nothing; it will ask again.
			_, _, _ = c.WriteMsgUnix([]byte{0}, unix.UnixRights(int(f.Fd())), nil)
			_ = c.Close()
		}
	})
	return lender, nil
}

// Addr returns the TCP address.
func (l *Lender) Addr() string { return l.tcp.Addr().String() }

// Close ends the lending; borrowed sockets go on working.
func (l *Lender) Close() error {
	err := errors.Join(l.unix.Close(), l.tcp.Close())
	l.ended.Wait()
	return err
}
