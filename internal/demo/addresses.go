package demo

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"github.com/trimtab/trimtab/internal/hint"
)

// addresses gives out loopback addresses, each once, to processes that listen later. A port that
// the kernel chose and that is closed again may be chosen again at once, for another process or
// an outgoing connection. So the ports lie below the range from which the kernel chooses, and
// each is reserved, for other demos too, by a UDP socket.
type addresses struct {
	marks []net.PacketConn
}

// The kernel chooses from 32768 on by default.
const (
	lowestPort  = 10000
	highestPort = 32767
)

// free returns an address on which nothing listens.
func (a *addresses) free() (string, error) {
	var last error
	for range 1000 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(lowestPort+rand.IntN(highestPort-lowestPort+1)))
		mark, err := net.ListenPacket("udp", address)
		if err != nil {
			last = err
			continue
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			last = err
			_ = mark.Close()
			continue
		}
		a.marks = append(a.marks, mark)
		return address, l.Close()
	}
	return "", fmt.Errorf("find a free port from %d to %d: %w", lowestPort, highestPort, last)
}

// close releases the reserved addresses.
func (a *addresses) close() error {
	var errs []error
	for _, m := range a.marks {
		errs = append(errs, m.Close())
	}
	a.marks = nil
	return errors.Join(errs...)
}

// reachable returns an error unless this process can connect to itself over TCP. In a network
// namespace whose loopback interface is down a process can listen, but not connect: the demo
// would wait a minute for its first service.
func reachable() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		defer l.Close()
		var c net.Conn
		if c, err = net.DialTimeout("tcp", l.Addr().String(), 2*time.Second); err == nil {
			return c.Close()
		}
	}
	return hint.Add(fmt.Errorf("connect over the loopback interface, which the demo needs and no other network: %w", err), hint.Loopback)
}
