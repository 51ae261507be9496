package hostfs

import (
	"encoding/binary"
	"fmt"
	"os"
	"path"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// OOMWatch counts how often a control group of version 1 ran out of memory. The count outlives the
// group, which its files do not.
type OOMWatch struct{ fd int }

// WatchOOM begins to count for a group of version 1, by cgroup.event_control. The error says that the
// kernel has no such notification, or that this process has no right to write there.
func (r *Root) WatchOOM(group string) (*OOMWatch, error) {
	fd, err := r.notify(group, "memory.oom_control", "")
	if err != nil {
		return nil, err
	}
	return &OOMWatch{fd}, nil
}

// notify returns an eventfd to which the kernel adds each event of a file of a group of version 1.
func (r *Root) notify(group, file, argument string) (int, error) {
	if r.kind != Cgroup1 {
		return -1, fmt.Errorf("watch %s: %w", r.join(group), unix.EOPNOTSUPP)
	}
	of, err := r.open(path.Join(group, file), unix.O_RDONLY)
	if err != nil {
		return -1, fmt.Errorf("watch %s: %w", r.join(group), err)
	}
	defer of.Close()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return -1, fmt.Errorf("watch %s: %w", r.join(group), err)
	}
	if err := r.Write(path.Join(group, "cgroup.event_control"), fmt.Sprintf("%d %d %s", fd, of.Fd(), argument)); err != nil {
		_ = unix.Close(fd) // it counts nothing
		return -1, fmt.Errorf("watch %s: %w", r.join(group), err)
	}
	return fd, nil
}

// Count returns the number of events since the last call. The removal of the group is one, too, which
// the kernel may signal some time after its directory is gone.
func (w *OOMWatch) Count() uint64 {
	var b [8]byte
	if n, err := unix.Read(w.fd, b[:]); err != nil || n != len(b) {
		return 0 // EAGAIN: none
	}
	return binary.NativeEndian.Uint64(b[:])
}

// Close ends the watch.
func (w *OOMWatch) Close() error { return unix.Close(w.fd) }

// UsageWatch tells when the memory of control groups of version 1 passes an amount.
type UsageWatch struct {
	// Passed has the groups that did, in either direction, each once for a call of At.
	Passed chan string

	root  *Root
	fd    int      // of epoll
	epoll *os.File // the same, of which Fd would make it block
	raw   syscall.RawConn
	ended chan struct{}
	all   sync.WaitGroup

	mu     sync.Mutex
	fds    map[string]int
	groups map[int]string
}

// WatchUsage begins to watch no group.
func (r *Root) WatchUsage() (*UsageWatch, error) {
	if r.kind != Cgroup1 {
		return nil, fmt.Errorf("watch memory below %s: %w", r.path, unix.EOPNOTSUPP)
	}
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		err = unix.SetNonblock(fd, true) // so that a goroutine, and not a thread, waits for it
	}
	if err != nil {
		return nil, fmt.Errorf("watch memory below %s: %w", r.path, err)
	}
	w := &UsageWatch{Passed: make(chan string), root: r, fd: fd, epoll: os.NewFile(uintptr(fd), "epoll"), ended: make(chan struct{}), fds: map[string]int{}, groups: map[int]string{}}
	if w.raw, err = w.epoll.SyscallConn(); err != nil {
		return nil, fmt.Errorf("watch memory below %s: %w", r.path, err)
	}
	w.all.Go(w.wait)
	return w, nil
}

// wait tells of groups until the watch is closed.
func (w *UsageWatch) wait() {
	var events [16]unix.EpollEvent
	for {
		n := 0
		if err := w.raw.Read(func(fd uintptr) bool {
			n, _ = unix.EpollWait(int(fd), events[:], 0)
			return n > 0
		}); err != nil {
			return
		}
		for _, e := range events[:n] {
			w.mu.Lock()
			group, ok := w.groups[int(e.Fd)]
			w.mu.Unlock()
			if !ok {
				continue // it was closed meanwhile
			}
			select {
			case w.Passed <- group:
			case <-w.ended:
				return
			}
		}
	}
}

// At tells once when the group passes so many bytes, and not any more when it passes what an earlier call
// named; 0: never.
func (w *UsageWatch) At(group string, bytes uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if fd, ok := w.fds[group]; ok {
		delete(w.fds, group)
		delete(w.groups, fd)
		_ = unix.Close(fd) // the kernel forgets it
	}
	if bytes == 0 {
		return nil
	}
	fd, err := w.root.notify(group, "memory.usage_in_bytes", fmt.Sprint(bytes))
	if err != nil {
		return err
	}
	w.fds[group], w.groups[fd] = fd, group
	if err := unix.EpollCtl(w.fd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(fd)}); err != nil {
		return fmt.Errorf("watch %s: %w", group, err)
	}
	return nil
}

// Close ends the watch.
func (w *UsageWatch) Close() error {
	close(w.ended)
	err := w.epoll.Close()
	w.all.Wait()
	for _, fd := range w.fds {
		_ = unix.Close(fd)
	}
	return err
}
