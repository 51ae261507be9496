package gate

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// open listens on host:port with SO_REUSEPORT, so that the next process of the same user can listen
// there before this one stops, or on unix:/path, where the next process replaces the socket.
func open(ctx context.Context, address string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return openSocket(path)
	}
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		if e := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) }); e != nil {
			return e
		}
		return err
	}}
	l, err := c.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return l, nil
}

// openSocket creates a socket under a temporary name and renames it to path, so that an existing
// socket is replaced atomically.
func openSocket(path string) (net.Listener, error) {
	mine := fmt.Sprintf("%s.%d", path, os.Getpid())
	_ = os.Remove(mine) // left by an earlier process with the same number, such as 1 in a container
	l, err := net.Listen("unix", mine)
	if err != nil {
		return nil, fmt.Errorf("listen on unix:%s: %w", path, err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	err = os.Chmod(mine, 0o600)
	if err == nil {
		err = os.Rename(mine, path)
	}
	if err != nil {
		_ = l.Close()
		_ = os.Remove(mine)
		return nil, fmt.Errorf("listen on unix:%s: %w", path, err)
	}
	return l, nil
}

// steer sends new connections to the process that listens beside this one, if there is one. A
// listener that is closed resets the connections that it has not accepted yet; after steer the
// kernel gives this listener only connections whose handshake had begun before.
//
// The kernel numbers the sockets of a port in the order of listen(2), and the last takes the
// number of one that closes. So with two processes this one is 0 and the next is 1; a number that
// does not exist makes the kernel choose by hash, which is what it does without a program.
//
// Source: socket(7), SO_ATTACH_REUSEPORT_CBPF.
func steer(l net.Listener) error {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	program := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 1}}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF,
			&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	})
	if err != nil {
		return err
	}
	return set
}
