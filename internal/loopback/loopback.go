// Package loopback reserves addresses for tests, for servers that other processes start, or that
// start more than once.
//
// A port that the kernel chose and that is closed again may at once become
// that of an outgoing connection, or of another test. Those given here lie
// below the range from which the kernel chooses, and are marked as taken for
// as long as the test runs. Where the test listens itself, and once, port 0 is
// the better choice.
package loopback

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// By default the kernel assigns ports from 32768 on.
const (
	lowest  = 10000
	highest = 32767
)

// Address returns a free host:port of 127.0.0.1 that no other caller gets before the test ends,
// not even in another process.
func Address(t testing.TB) string {
	t.Helper()
	for range 1000 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(lowest+rand.IntN(highest-lowest+1)))
		// No program sends to it: the socket serves as a lock that ends with its process.
		mark, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			_ = mark.Close()
			continue
		}
		l.Close()
		t.Cleanup(func() { _ = mark.Close() })
		return address
	}
	t.Fatal("find a free address: none in 1,000 tries")
	return ""
}
