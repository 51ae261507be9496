package jobs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
)

// MaxFile bounds a file of progress: enough for some ten thousand appended reports.
const MaxFile = 1 << 20

// Source is a file in which a job reports its progress.
type Source struct {
	// Name is its absolute path.
	Name string
	// Strict says that an untrusted user chose the file name. No part of the path may be a symbolic
	// link, and errors do not reveal whether the file exists.
	Strict bool
}

// mark identifies the state of a file.
type mark struct {
	written   unix.Timespec
	inode     uint64
	size      int64
	something bool
}

// Read reads the report in the file: the only object in it, or its last line. It opens no pipe,
// device or link. Its error reveals nothing of the content.
func (s Source) Read() (Report, error) {
	r, _, _, err := s.readNew(mark{})
	return r, err
}

// readNew reads the report unless the file has not changed since it had the given mark.
func (s Source) readNew(known mark) (r Report, now mark, news bool, err error) {
	r, now, err = s.read(known)
	if err != nil && s.Strict {
		err = trimtab.Invalidf("read progress: nothing in %s can be read: it is missing, is or lies behind a link, is no regular file of at most %d bytes, or ends with no JSON object such as {\"done\": 0.4}",
			s.Name, MaxFile)
	} else if err != nil {
		err = fmt.Errorf("read progress: %w", err)
	}
	return r, now, now != known, err
}

func (s Source) read(known mark) (r Report, now mark, err error) {
	f, now, err := s.open(known)
	if err != nil || f == nil {
		return r, now, err
	}
	defer f.Close()
	switch {
	case now.size > MaxFile:
		return r, now, trimtab.Invalidf("%s has %d bytes, limit %d: begin it anew", s.Name, now.size, MaxFile)
	case now.size == 0:
		return r, now, trimtab.Invalidf("%s is empty", s.Name)
	}
	tail := make([]byte, min(now.size, MaxReport))
	n, err := f.ReadAt(tail, now.size-int64(len(tail)))
	if err != nil && !errors.Is(err, io.EOF) {
		return r, now, err
	}
	tail = bytes.TrimSpace(tail[:n])
	if len(tail) == 0 {
		return r, now, trimtab.Invalidf("%s is blank", s.Name)
	}
	if now.size <= MaxReport { // perhaps one object over several lines
		if r, err := Parse(tail); err == nil {
			return r, now, nil
		}
	}
	r, err = Parse(tail[bytes.LastIndexByte(tail, '\n')+1:])
	return r, now, err
}

// open opens a regular file, and nothing else: opening a device may have an effect, as with
// /dev/watchdog, so the type is checked before. It returns nil if the file has not changed since
// known.
func (s Source) open(known mark) (*os.File, mark, error) {
	look := lookAt
	if s.Strict {
		look = lookStrictly
	}
	fd, err := look(s.Name)
	if err != nil {
		return nil, mark{}, &os.PathError{Op: "open", Path: s.Name, Err: err}
	}
	defer func() { _ = unix.Close(fd) }() // only a name was open
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, mark{}, &os.PathError{Op: "stat", Path: s.Name, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, mark{}, trimtab.Invalidf("%s is no regular file", s.Name)
	}
	now := mark{st.Mtim, st.Ino, st.Size, true}
	if now == known {
		return nil, now, nil
	}
	f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	return f, now, err
}

// nameOnly opens a name without an effect on the file; for a link, it opens the link itself.
const nameOnly = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC

func lookAt(name string) (int, error) { return unix.Open(name, nameOnly, 0) }

// lookStrictly follows no symbolic link in the path.
func lookStrictly(name string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, name, &unix.OpenHow{Flags: nameOnly, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // before Linux 5.6, or behind a filter of that time
		return lookStepwise(name)
	}
	return fd, err
}

// lookStepwise is lookStrictly for kernels without openat2.
func lookStepwise(name string) (int, error) {
	parts := strings.Split(strings.TrimPrefix(name, "/"), "/")
	at, err := unix.Open("/", nameOnly|unix.O_DIRECTORY, 0)
	for i, part := range parts {
		if err != nil {
			return -1, err
		}
		flags := nameOnly
		if i < len(parts)-1 {
			flags |= unix.O_DIRECTORY // a directory is never a link
		}
		var next int
		next, err = unix.Openat(at, part, flags, 0)
		_ = unix.Close(at) // only a name was open
		at = next
	}
	return at, err
}
