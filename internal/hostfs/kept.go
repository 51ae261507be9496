package hostfs

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Kept is a kernel file that stays open, for files read or written many times a second: one
// system call each, while [Root.Read] and [Root.Write] look the name up each time. Once its
// directory is removed every call fails with os.ErrNotExist.
type Kept struct {
	f    *os.File
	name string
	kind Filesystem
	buf  [quickMax]byte
}

// Keep opens a regular file to read, and also to write if write is set.
func (r *Root) Keep(name string, write bool) (*Kept, error) {
	flags := os.O_RDONLY
	if write {
		flags = os.O_RDWR
	}
	f, err := r.file(name, flags)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", r.join(name), err)
	}
	return &Kept{f: f, name: r.join(name), kind: r.kind}, nil
}

// Read returns the content, valid until the next call.
func (k *Kept) Read() ([]byte, error) {
	n, err := syscall.Pread(int(k.f.Fd()), k.buf[:], 0)
	if err != nil {
		return nil, k.failed("read", err)
	}
	return k.buf[:n], nil
}

// Write hands value to the file in one write(2).
func (k *Kept) Write(value string) error {
	if err := writeWhole(k.f, value, k.kind); err != nil {
		return k.failed("write", err)
	}
	return nil
}

// failed returns the error of an operation. A cgroup that was removed answers ENODEV.
func (k *Kept) failed(verb string, err error) error {
	if errors.Is(err, syscall.ENODEV) {
		err = os.ErrNotExist
	}
	return fmt.Errorf("%s %s: %w", verb, k.name, err)
}

// Close closes the file.
func (k *Kept) Close() error { return k.f.Close() }
