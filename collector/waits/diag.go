package waits

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
)

const (
	// byFamily is the netlink request for sockets by family (linux/sock_diag.h), listens the
	// state of listening sockets (net/tcp_states.h).
	byFamily, listens = 20, 10
	// sizeRequest and sizeSocket are the sizes of inet_diag_req_v2 and inet_diag_msg
	// (linux/inet_diag.h), queueAt and inodeAt the offsets of idiag_rqueue and idiag_inode in the
	// latter.
	sizeRequest, sizeSocket = 56, 72
	queueAt, inodeAt        = 56, 68
	// answersWithin is the time limit for the kernel's answer.
	answersWithin = time.Second
)

// listeningHere reads the accept queues of this process's namespace that are not empty, by
// netlink.
func listeningHere() (map[uint64]int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("open netlink socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	out, buffer, deadline := map[uint64]int{}, make([]byte, 32<<10), time.Now().Add(answersWithin)
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		if err := ask(fd, family, deadline, buffer, out); err != nil && !(family == unix.AF_INET6 && errors.Is(err, unix.ENOENT)) {
			return nil, fmt.Errorf("ask for sockets that listen: %w", err)
		}
	}
	return out, nil
}

// ask asks for the sockets of one family.
func ask(fd int, family byte, deadline time.Time, buffer []byte, out map[uint64]int) error {
	request := make([]byte, unix.SizeofNlMsghdr+sizeRequest)
	binary.NativeEndian.PutUint32(request, uint32(len(request)))
	binary.NativeEndian.PutUint16(request[4:], byFamily)
	binary.NativeEndian.PutUint16(request[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	request[unix.SizeofNlMsghdr], request[unix.SizeofNlMsghdr+1] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(request[unix.SizeofNlMsghdr+4:], 1<<listens)
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	for {
		left := unix.NsecToTimeval(time.Until(deadline).Nanoseconds())
		if left.Sec < 0 || left.Sec == 0 && left.Usec <= 0 { // 0 would mean no limit
			return os.ErrDeadlineExceeded
		}
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &left); err != nil {
			return err
		}
		n, from, err := unix.Recvfrom(fd, buffer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if sender, ok := from.(*unix.SockaddrNetlink); !ok || sender.Pid != 0 {
			continue // not the kernel
		}
		if done, err := ParseDiag(buffer[:n], out); done || err != nil {
			return err
		}
	}
}

// ParseDiag reads the non-empty accept queues in a part of an answer; done reports that it was
// the last part. If the request failed, the end of the answer says why.
func ParseDiag(b []byte, out map[uint64]int) (done bool, err error) {
	messages, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return false, fmt.Errorf("read an answer of %d bytes: %w", len(b), err)
	}
	for i := range messages {
		m := &messages[i]
		switch {
		case m.Header.Type == unix.NLMSG_DONE && len(m.Data) < 4:
			return true, nil
		case (m.Header.Type == unix.NLMSG_DONE || m.Header.Type == unix.NLMSG_ERROR) && len(m.Data) >= 4:
			if code := int32(binary.NativeEndian.Uint32(m.Data)); code < 0 {
				return true, syscall.Errno(-code)
			}
			return true, nil
		case m.Header.Type != byFamily || len(m.Data) < sizeSocket:
			return false, trimtab.Invalidf("a message of kind %d and %d bytes: want a socket", m.Header.Type, len(m.Data))
		}
		queue, inode := binary.NativeEndian.Uint32(m.Data[queueAt:]), binary.NativeEndian.Uint32(m.Data[inodeAt:])
		if m.Data[1] == listens && queue > 0 && queue < 1<<31 {
			if len(out) == maxListening {
				return false, ErrTooMany
			}
			out[uint64(inode)] = int(queue)
		}
	}
	return false, nil
}
