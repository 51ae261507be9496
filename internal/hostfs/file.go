package hostfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
)

// ReadFile returns the content of a regular file of at most limit bytes. Anything longer, and a
// directory, pipe, device or socket, also behind a link, is trimtab.ErrInvalid. It never waits
// for another process.
func ReadFile(path string, limit int64) ([]byte, error) {
	b, err := readUpTo(path, limit)
	if err == nil && int64(len(b)) > limit {
		return nil, trimtab.Invalidf("read %s: more than %d bytes", path, limit)
	}
	return b, err
}

// readUpTo is ReadFile, but returns limit + 1 bytes of a longer file.
func readUpTo(path string, limit int64) ([]byte, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := int64(0)
	if info, err := f.Stat(); err == nil {
		size = min(info.Size(), limit)
	}
	b := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	if _, err := b.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, cause(err))
	}
	return b.Bytes(), nil
}

// OpenFile opens a regular file for reading, as [ReadFile] does.
func OpenFile(path string) (*os.File, error) {
	// Looked at before it is opened: to open a device can be an effect by itself, as of
	// one that resets the machine unless it is written to again and again.
	info, err := os.Stat(path)
	if errors.Is(err, syscall.ELOOP) {
		return nil, trimtab.Invalidf("open %s: it is a link in a loop, where a file belongs", path)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, cause(err))
	}
	if err := regular(path, info); err != nil {
		return nil, err
	}
	return openRegular(path, os.O_RDONLY)
}

// openRegular opens a regular file and nothing else that may have replaced it. It is
// non-blocking, so that a pipe in its place cannot hang the caller.
func openRegular(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, cause(err))
	}
	info, err := f.Stat()
	if err == nil {
		err = regular(path, info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func regular(path string, info os.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return trimtab.Invalidf("open %s: it is %s, where a file belongs", path, kindOf(info))
}

// kindOf names the type of a file that is not a regular one.
func kindOf(info os.FileInfo) string {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return "a directory"
	case mode&os.ModeSymlink != 0:
		return "a link"
	case mode&os.ModeNamedPipe != 0:
		return "a pipe"
	case mode&os.ModeDevice != 0:
		return "a device"
	case mode&os.ModeSocket != 0:
		return "a socket"
	}
	return "no regular file"
}

// OpenOwn opens one of trimtab's own files to read and write, creating it if needed. It does not
// follow a link, which may lead to another user's file. Anything but a file at the path is
// renamed, so that nothing is lost; aside is then its new name.
func OpenOwn(path string) (f *os.File, aside string, err error) {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		if aside, err = setAside(path, info); err != nil {
			return nil, "", err
		}
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, "", fmt.Errorf("open %s: %w", path, cause(err))
	}
	f, err = openRegular(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW)
	return f, aside, err
}

// mostAside bounds how many are set aside of one name.
const mostAside = 9

// setAside renames something that is not a regular file, without overwriting anything.
func setAside(path string, info os.FileInfo) (to string, err error) {
	for n := 1; n <= mostAside; n++ {
		if to = path + ".damaged"; n > 1 {
			to += "-" + strconv.Itoa(n)
		}
		err = unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
		if !errors.Is(err, syscall.EEXIST) {
			break
		}
	}
	if err != nil {
		return "", trimtab.Invalidf("open %s: it is %s, where a file belongs, and cannot be renamed (%v): move it away", path, kindOf(info), err)
	}
	return to, nil
}

// ReplaceFile writes a file that is whole, the old or the new, whatever happens.
func ReplaceFile(name string, content []byte) (err error) {
	next := name + ".new"
	f, _, err := OpenOwn(next)
	if err != nil {
		return err
	}
	if err = f.Truncate(0); err == nil {
		_, err = f.Write(content)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(next, name)
}
