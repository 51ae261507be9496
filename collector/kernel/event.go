package kernel

import (
	"encoding/binary"
	"net/netip"

	"github.com/trimtab/trimtab"
)

// Event is one message that a process sent or received on a TCP socket.
type Event struct {
	// Time is on the monotonic clock, in nanoseconds.
	Time            int64
	Process, Thread uint32
	Sent            bool
	// Bytes is > 0.
	Bytes int32
	// Local and Remote are the ends of the socket.
	Local, Remote netip.AddrPort
	// Net distinguishes network namespaces if addresses do not: 0 unless Local is a loopback
	// address.
	Net uint64
}

// eventBytes is the length of an event as the kernel side writes it:
//
//	0 time   8 process<<32 | thread   16 bytes   20 sent   22 family
//	24 local port   26 remote port (of the network's byte order)   32 local   48 remote address
//	64 network namespace
const eventBytes = 72

// Families of addresses, as the kernel numbers them.
const (
	inet4 = 2
	inet6 = 10
)

// parse reads an event. Its errors are trimtab.ErrInvalid.
func parse(b []byte) (Event, error) {
	if len(b) < eventBytes {
		return Event{}, trimtab.Invalidf("event of %d bytes, want %d", len(b), eventBytes)
	}
	n := binary.NativeEndian
	context := n.Uint64(b[8:])
	e := Event{
		Time: int64(n.Uint64(b)), Process: uint32(context >> 32), Thread: uint32(context),
		Bytes: int32(n.Uint32(b[16:])), Sent: n.Uint16(b[20:]) != 0,
	}
	var local, remote netip.Addr
	switch family := n.Uint16(b[22:]); family {
	case inet4:
		local, remote = netip.AddrFrom4([4]byte(b[32:])), netip.AddrFrom4([4]byte(b[48:]))
	case inet6: // of which some carry version 4
		local, remote = netip.AddrFrom16([16]byte(b[32:])).Unmap(), netip.AddrFrom16([16]byte(b[48:])).Unmap()
	default:
		return Event{}, trimtab.Invalidf("event of address family %d", family)
	}
	e.Local = netip.AddrPortFrom(local, n.Uint16(b[24:]))
	e.Remote = netip.AddrPortFrom(remote, binary.BigEndian.Uint16(b[26:]))
	if local.IsLoopback() {
		e.Net = n.Uint64(b[64:])
	}
	if e.Bytes <= 0 || e.Time < 0 {
		return Event{}, trimtab.Invalidf("event of %d bytes at %d", e.Bytes, e.Time)
	}
	return e, nil
}
