package hostfs

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// quickMax is the most that [Root.quick] reads; files of cgroups are shorter.
const quickMax = 4096

// quick reads a short regular file in three system calls (five outside of cgroups), where os.Root
// takes fifteen, by openat2 (Linux 5.6), which itself stays within the directory and its mount.
// Groups are read every second, so these calls are their cost. done is false if it could not
// decide, for any reason: then the long way decides, and reports the error. A missing file is an
// error with done set.
func (r *Root) quick(name string) (text string, done bool, err error) {
	if text, done = r.kept.read(name); done {
		return text, true, nil
	}
	failed := r.self.Control(func(dir uintptr) {
		text, err = r.readBeneath(int(dir), name, 0)
	})
	if errors.Is(err, os.ErrNotExist) {
		return "", true, err
	}
	return text, failed == nil && err == nil, nil
}

// quickLook reports whether a name exists, in two system calls. An error other than
// os.ErrNotExist means that this is unknown.
func (r *Root) quickLook(name string) (err error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_MAGICLINKS}
	failed := r.self.Control(func(dir uintptr) {
		var fd int
		if fd, err = unix.Openat2(int(dir), name, &how); err == nil {
			err = unix.Close(fd)
		}
	})
	return errors.Join(failed, err)
}

// ReadIn returns the content of a file in a directory as Sub(dir).Read(name) does, in as few
// system calls as Read if no link is on the way.
func (r *Root) ReadIn(dir, name string) (text string, err error) {
	whole := path.Join(dir, name)
	err = errLong // a name that is not within the directory
	var failed error
	if filepath.IsLocal(name) {
		failed = r.self.Control(func(fd uintptr) {
			text, err = r.readBeneath(int(fd), whole, unix.RESOLVE_NO_SYMLINKS)
		})
	}
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read %s: %w", r.join(whole), err)
	}
	if failed == nil && err == nil {
		return text, nil
	}
	sub, err := r.Sub(dir)
	if err != nil {
		return "", err
	}
	defer sub.Close()
	return sub.Read(name)
}

// errLong says that readBeneath cannot read this file, and the general method must.
var errLong = errors.New("not a short regular file")

// readBeneath reads a file beneath an open directory; resolve adds restrictions on the path.
func (r *Root) readBeneath(dir int, name string, resolve uint64) (string, error) {
	how := unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_MAGICLINKS | resolve,
	}
	fd, err := unix.Openat2(dir, name, &how)
	if err != nil {
		return "", err
	}
	keeps := false
	defer func() {
		if !keeps || !r.kept.keep(name, fd) {
			_ = syscall.Close(fd) // it was only read
		}
	}()
	kernel := r.kind != Ordinary
	if !kernel {
		// A cgroup has but directories, which cannot be read, and regular files.
		var stat syscall.Stat_t
		if err := syscall.Fstat(fd, &stat); err != nil {
			return "", err
		}
		if stat.Mode&syscall.S_IFMT != syscall.S_IFREG {
			return "", errLong
		}
	}
	var buf [quickMax]byte
	for n := 0; n < len(buf); {
		m, err := syscall.Read(fd, buf[n:])
		if err != nil {
			return "", err
		}
		n += m
		// The kernel fills the buffer with its own files as far as it can (seq_read_iter), so a
		// read that leaves space is complete.
		if m == 0 || kernel && n < quickMax/2 {
			keeps = kernel && resolve == 0
			return string(buf[:n]), nil
		}
	}
	return "", errLong
}
