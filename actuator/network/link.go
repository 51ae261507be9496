package network

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
)

// handle is the handle of trimtab's disciplines, "tr": 7472:0.
const handle = 0x7472 << 16

// space is an open network namespace.
type space struct{ *netlink.Handle }

// enter opens a namespace by its file; "": that of this process. Nothing stays open after Close,
// since an open file would keep the namespace alive.
func enter(file string) (*space, error) {
	ns := netns.None()
	if file != "" {
		var err error
		if ns, err = netns.GetFromPath(file); err != nil {
			return nil, fmt.Errorf("open network namespace %s: %w", file, err)
		}
		defer func() { _ = ns.Close() }() // the socket stays in the namespace without it
	}
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("enter network namespace %s: %w", file, err)
	}
	return &space{h}, nil
}

// link finds an interface; the error is os.ErrNotExist if it does not exist.
func (s *space) link(name string) (netlink.Link, error) {
	l, err := s.LinkByName(name)
	var gone netlink.LinkNotFoundError
	if errors.As(err, &gone) || errors.Is(err, unix.ENODEV) {
		err = os.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("find interface %s: %w", name, err)
	}
	return l, nil
}

// limit is the state of an interface's root discipline.
type limit struct {
	trimtab.Amount
	// ours says that trimtab made it.
	ours bool
}

// read returns the limit of an interface; the error is trimtab.ErrRefused where another program
// has set a qdisc.
func (s *space) read(l netlink.Link) (limit, error) {
	all, err := s.QdiscList(l)
	if err != nil {
		return limit{}, fmt.Errorf("list queueing disciplines of %s: %w", l.Attrs().Name, err)
	}
	for _, q := range all {
		a := q.Attrs()
		if a.Parent != netlink.HANDLE_ROOT || a.Handle>>16 == 0 {
			continue
		}
		tbf, ok := q.(*netlink.Tbf)
		if !ok || a.Handle != handle {
			return limit{}, fmt.Errorf("interface %s has the root discipline %s %s, which is not trimtab's: delete it, or leave the limit to whoever set it: %w",
				l.Attrs().Name, q.Type(), netlink.HandleStr(a.Handle), trimtab.ErrRefused)
		}
		v := trimtab.Units(float64(tbf.Rate))
		return limit{v, true}, v.Validate()
	}
	return limit{Amount: trimtab.Unlimited()}, nil
}

// The range of a token bucket's rate, in bytes per second.
const (
	least = 1000
	most  = 1e11
)

const (
	// leastBurst and burstTime determine the bytes that may be sent at once; maxWait is how long a
	// packet may wait before it is dropped, in seconds.
	leastBurst, burstTime, maxWait = 32 << 10, 0.005, 0.05
)

// bucket returns the token bucket for a rate on an interface.
func bucket(l netlink.Link, rate uint64) *netlink.Tbf {
	burst := math.Max(math.Max(leastBurst, float64(rate)*burstTime), 2*float64(l.Attrs().MTU))
	burst = math.Min(burst, 1<<30)
	return &netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: handle, Parent: netlink.HANDLE_ROOT},
		Rate:       rate,
		// The kernel wants the burst as the time that it takes, in its own ticks.
		Buffer: uint32(math.Min(math.Ceil(burst/float64(rate)*1e6*netlink.TickInUsec()), math.MaxUint32)),
		Limit:  uint32(math.Min(float64(rate)*maxWait+burst, math.MaxUint32)),
	}
}

// write sets a limit. v must be a result of nearest.
func (s *space) write(l netlink.Link, now limit, v trimtab.Amount) error {
	var err error
	switch {
	case !v.Unlimited:
		err = s.QdiscReplace(bucket(l, uint64(v.Value)))
	case now.ours:
		err = s.QdiscDel(bucket(l, least))
	}
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EOPNOTSUPP) {
		err = fmt.Errorf("this kernel has no token bucket filter (sch_tbf): %w: %w", err, trimtab.ErrUnsupported)
	}
	if err != nil {
		return fmt.Errorf("limit interface %s to %s: %w", l.Attrs().Name, trimtab.AmountOf(trimtab.Network, v), err)
	}
	return nil
}

// location returns an identity of an interface that all processes agree on, from the inode of its
// namespace.
func location(file, name string) (string, error) {
	if file == "" {
		file = "/proc/self/ns/net"
	}
	var x unix.Stat_t
	if err := unix.Stat(file, &x); err != nil {
		return "", fmt.Errorf("find network namespace %s: %w", file, err)
	}
	return filepath.Join("/", fmt.Sprintf("net:[%d]", x.Ino), name), nil
}
