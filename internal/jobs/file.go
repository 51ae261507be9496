package jobs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
)

// MaxFile bounds a file of progress: a job that appends has room for some ten
// thousand reports.
const MaxFile = 1 << 20

// ReadFile reads the report in a file: the only object in it, or its last line. It
// opens no pipe, device or link, and waits for nobody. Its error says nothing of
// what the file holds.
func ReadFile(name string) (Report, error) {
	f, err := open(name)
	if err != nil {
		return Report{}, fmt.Errorf("read progress: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return Report{}, fmt.Errorf("read progress: %w", err)
	case info.Size() > MaxFile:
		return Report{}, trimtab.Invalidf("read progress: %s has %d bytes, limit %d: begin it anew", name, info.Size(), MaxFile)
	}
	tail := make([]byte, min(info.Size(), MaxReport))
	n, err := f.ReadAt(tail, info.Size()-int64(len(tail)))
	if err != nil && !errors.Is(err, io.EOF) {
		return Report{}, fmt.Errorf("read progress: %w", err)
	}
	tail = bytes.TrimSpace(tail[:n])
	if len(tail) == 0 {
		return Report{}, trimtab.Invalidf("read progress: %s is empty", name)
	}
	if info.Size() <= MaxReport { // perhaps one object over several lines
		if r, err := Parse(tail); err == nil {
			return r, nil
		}
	}
	return Parse(tail[bytes.LastIndexByte(tail, '\n')+1:])
}

// open opens a regular file, and nothing else: to open a device may do something, as
// with /dev/watchdog, so what it is is seen before.
func open(name string) (*os.File, error) {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer func() { _ = unix.Close(fd) }() // only a name was open
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, trimtab.Invalidf("%s is no regular file", name)
	}
	return os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
}
