package waits

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab/internal/hostfs"
)

// message is one of netlink's.
func message(kind uint16, data []byte) []byte {
	b := make([]byte, unix.SizeofNlMsghdr, unix.SizeofNlMsghdr+len(data))
	binary.NativeEndian.PutUint32(b, uint32(cap(b)))
	binary.NativeEndian.PutUint16(b[4:], kind)
	return append(b, data...)
}

func TestAnAnswerThatFailedIsNotOneWithoutSockets(t *testing.T) {
	number := func(n int32) []byte { return binary.NativeEndian.AppendUint32(nil, uint32(n)) }
	for name, c := range map[string]struct {
		message []byte
		want    error
	}{
		"it ended well":      {message(unix.NLMSG_DONE, number(0)), nil},
		"without a number":   {message(unix.NLMSG_DONE, nil), nil},
		"it failed":          {message(unix.NLMSG_DONE, number(-int32(unix.ENOENT))), syscall.ENOENT},
		"it was refused":     {message(unix.NLMSG_ERROR, number(-int32(unix.EPERM))), syscall.EPERM},
		"it is acknowledged": {message(unix.NLMSG_ERROR, number(0)), nil},
	} {
		if done, err := ParseDiag(c.message, map[uint64]int{}); !done || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v: want %v", name, done, err, c.want)
		}
	}
}

func TestOfNetlinkNoMoreSocketsAreKeptThanOfAFile(t *testing.T) {
	out, socket := map[uint64]int{}, make([]byte, sizeSocket)
	socket[1] = listens
	binary.NativeEndian.PutUint32(socket[queueAt:], 3)
	for i := range uint32(maxListening + 1) {
		binary.NativeEndian.PutUint32(socket[inodeAt:], 1+i)
		if _, err := ParseDiag(message(byFamily, socket), out); (err != nil) != (i == maxListening) || err != nil && !errors.Is(err, ErrTooMany) {
			t.Fatalf("after %d: %v", i, err)
		}
	}
}

func TestWhereNetlinkFailsTheFileIsReadAndItIsAskedAgainAfterMinutes(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "a"), 0o755), os.WriteFile(filepath.Join(dir, "a/cgroup.procs"), []byte(fmt.Sprintln(os.Getpid())), 0o644)); err != nil {
		t.Fatal(err)
	}
	root, err := hostfs.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	asked := 0
	s := &Sockets{ask: func() (map[uint64]int, error) { asked++; return nil, syscall.ENOENT }}
	for round := range askedAgain + 1 {
		s.Begin(4000)
		if n, err := s.Queued(root, "a"); n != 1 || err != nil {
			t.Fatalf("round %d: %d, %v: want the connection that waits", round, n, err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times in %d rounds, want twice", asked, askedAgain+1)
	}
}

// Another process can send to a socket of netlink: here, that the answer is over.
func TestOnlyTheKernelAnswersAndInTime(t *testing.T) {
	open := func() int {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
		if err == nil {
			err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
		}
		if err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ours, other := open(), open()
	name, err := unix.Getsockname(ours)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Sendto(other, message(unix.NLMSG_DONE, make([]byte, 4)), 0, name); err != nil {
		t.Skipf("nobody but the kernel may send here: %v", err)
	}
	out, buffer := map[uint64]int{}, make([]byte, 32<<10)
	if err := ask(ours, unix.AF_INET, time.Now().Add(answersWithin), buffer, out); err != nil || len(out) == 0 {
		t.Errorf("%v, %v: want the connection that waits", out, err)
	}
	if err := ask(open(), unix.AF_INET, time.Now(), buffer, out); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v: want that the time is over", err)
	}
}

func TestWhoseSocketsAreIsKeptOfSoManyAlone(t *testing.T) {
	var s Sockets
	s.Begin(100)
	for i := range uint64(maxOwners + 1) {
		s.owners[i] = owner{"a", 1}
	}
	if s.Begin(100); len(s.owners) > 0 {
		t.Errorf("%d are kept", len(s.owners))
	}
}
