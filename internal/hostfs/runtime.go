package hostfs

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// MemoryFile makes an empty file that is in no directory. Children inherit it only if they are
// given it.
func MemoryFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make file in memory: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// MakeWritable creates a directory for this user alone if it does not exist, and reports whether
// this process may create files in it.
func MakeWritable(dir string) bool {
	return os.MkdirAll(dir, 0o700) == nil && unix.Access(dir, unix.W_OK) == nil
}
