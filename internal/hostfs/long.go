package hostfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
)

// maxDirs bounds what [Root.Dirs] lists.
const maxDirs = 4096

// Dirs lists the directories in a directory of the root, by name. More than 4096 are an error: no
// kernel file system that trimtab uses has so many in one place.
func (r *Root) Dirs(name string) ([]string, error) {
	f, err := r.open(name, os.O_RDONLY|syscall.O_DIRECTORY)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", r.join(name), err)
	}
	defer f.Close()
	var all []string
	for {
		entries, err := f.ReadDir(listed)
		for _, e := range entries {
			if e.IsDir() {
				all = append(all, e.Name())
			}
		}
		if len(all) > maxDirs {
			return nil, trimtab.Invalidf("list %s: more than %d directories", r.join(name), maxDirs)
		}
		if errors.Is(err, io.EOF) {
			slices.Sort(all)
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", r.join(name), cause(err))
		}
	}
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
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", r.path, err)
	}
	for deadline := BootTime() + wait; ; {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil // which unlocks: nobody shares the descriptor
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", r.path, err)
		}
		if BootTime() >= deadline {
			f.Close()
			return nil, fmt.Errorf("lock %s: another program holds the lock (flock): %w", r.path, trimtab.ErrRefused)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", r.path, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
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
