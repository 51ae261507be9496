package hostfs

import (
	"encoding/binary"
	"fmt"
	"path"

	"golang.org/x/sys/unix"
)

// OOMWatch counts how often a control group of version 1 ran out of memory. The count outlives the
// group, which its files do not.
type OOMWatch struct{ fd int }

// WatchOOM begins to count for a group of version 1, by cgroup.event_control. The error says that the
// kernel has no such notification, or that this process has no right to write there.
func (r *Root) WatchOOM(group string) (*OOMWatch, error) {
	if r.kind != Cgroup1 {
		return nil, fmt.Errorf("watch %s: %w", r.join(group), unix.EOPNOTSUPP)
	}
	control, err := r.open(path.Join(group, "memory.oom_control"), unix.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", r.join(group), err)
	}
	defer control.Close()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", r.join(group), err)
	}
	if err := r.Write(path.Join(group, "cgroup.event_control"), fmt.Sprintf("%d %d", fd, control.Fd())); err != nil {
		_ = unix.Close(fd) // it counts nothing
		return nil, fmt.Errorf("watch %s: %w", r.join(group), err)
	}
	return &OOMWatch{fd}, nil
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
