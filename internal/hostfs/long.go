package hostfs

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
)

// maxDirs bounds what [Root.Dirs] lists.
const maxDirs = 4096

// Dirs lists the directories in a directory of the root, by name. More than 4096 are an error: no
// kernel file system that trimtab uses has so many in one place.
func (r *Root) Dirs(name string) ([]string, error) {
	all, err := r.dirs(name, 0, maxDirs)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", r.join(name), err)
	}
	if len(all) > maxDirs {
		return nil, trimtab.Invalidf("list %s: more than %d directories", r.join(name), maxDirs)
	}
	return all, nil
}

// ReadLong is Read for a file of up to limit bytes, such as a list of tasks.
func (r *Root) ReadLong(name string, limit int64) (string, error) {
	f, err := r.file(name, os.O_RDONLY)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", r.join(name), err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", r.join(name), cause(err))
	}
	if int64(len(b)) > limit {
		return "", trimtab.Invalidf("read %s: more than %d bytes", r.join(name), limit)
	}
	return string(b), nil
}

// Flock takes the advisory lock of the root directory itself, for changes that need several
// writes. It waits at most the given time, then the error is trimtab.ErrRefused.
func (r *Root) Flock(ctx context.Context, wait time.Duration) (unlock func(), err error) {
	f, err := r.open(".", os.O_RDONLY|syscall.O_DIRECTORY)
	if err == nil {
		if err = flock(ctx, f, syscall.LOCK_EX, BootTime()+wait, "another program holds the lock (flock)"); err == nil {
			return func() { f.Close() }, nil // which unlocks, since no other process shares the descriptor
		}
		f.Close()
	}
	return nil, fmt.Errorf("lock %s: %w", r.path, err)
}

// Inode returns the number of a directory, which distinguishes a control group from an earlier
// one of the same name: the kernel never reuses these numbers.
func (r *Root) Inode(name string) (uint64, error) {
	info, err := r.dir.Stat(name)
	if err != nil {
		return 0, fmt.Errorf("look at %s: %w", r.join(name), r.outside(err))
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && info.IsDir() {
		return s.Ino, nil
	}
	return 0, fmt.Errorf("look at %s: %w", r.join(name), syscall.ENOTDIR)
}
