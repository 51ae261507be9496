package hostfs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/pause"
)

// Lock is a lock on a file, until Close or the end of the process, however it ends. Children do
// not inherit it.
type Lock struct {
	file  *os.File
	aside string
	// device and inode are those of the file.
	device, inode uint64
}

// Aside is the new name of something else, such as a directory, that was in place of the file;
// "": there was nothing.
func (l *Lock) Aside() string { return l.aside }

// AcquireLock takes the lock file in dir, and waits at most the given time for another holder; then
// the error is trimtab.ErrRefused.
func AcquireLock(ctx context.Context, dir string, wait time.Duration) (*Lock, error) {
	return AcquireFile(ctx, filepath.Join(dir, "lock"), wait)
}

// AcquireFile takes a lock file, as AcquireLock does, creating it if needed. If something else has its
// path, such as a directory, that is no lock, and AcquireFile renames it.
func AcquireFile(ctx context.Context, path string, wait time.Duration) (*Lock, error) {
	return acquire(ctx, path, wait, syscall.LOCK_EX)
}

// Locked reports whether a process has the lock file. Concurrent calls do not disturb each other.
func Locked(ctx context.Context, path string) bool {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return false // it is no lock; the next process to take it renames it
	}
	l, err := acquire(ctx, path, 0, syscall.LOCK_SH)
	if err != nil {
		return errors.Is(err, trimtab.ErrRefused)
	}
	l.Close()
	return false
}

func acquire(ctx context.Context, path string, wait time.Duration, how int) (*Lock, error) {
	deadline := BootTime() + wait
	for aside := ""; ; {
		l, err := acquireOpen(ctx, path, deadline, how)
		if err != nil {
			return nil, err
		}
		aside = cmp.Or(aside, l.aside)
		// A file that was removed meanwhile is no lock: see Remove.
		if l.There() {
			l.aside = aside
			return l, nil
		}
		l.Close()
	}
}

// acquireOpen locks the file that is at the path now.
func acquireOpen(ctx context.Context, path string, deadline time.Duration, how int) (*Lock, error) {
	// No link: in a directory for temporary files it may be another user's, and lead to one of
	// trimtab's files.
	f, aside, err := OpenOwn(path)
	if err != nil {
		return nil, fmt.Errorf("take lock: %w", err)
	}
	dir := filepath.Dir(path)
	var own syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &own); err != nil {
		f.Close()
		return nil, fmt.Errorf("take lock in %s: %w", dir, err)
	}
	if err := flock(ctx, f, how, deadline, "another process holds it"); err != nil {
		f.Close()
		return nil, fmt.Errorf("take lock in %s: %w", dir, err)
	}
	return &Lock{f, aside, own.Dev, own.Ino}, nil
}

// flock locks an open file, and waits until the deadline for another holder; then the error is
// trimtab.ErrRefused, with the text held.
func flock(ctx context.Context, f *os.File, how int, deadline time.Duration, held string) error {
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return err
		case BootTime() >= deadline:
			return fmt.Errorf("%s: %w", held, trimtab.ErrRefused)
		case !pause.For(ctx, 20*time.Millisecond):
			return ctx.Err()
		}
	}
}

// There reports whether the file is still the one at its path: a removed file locks out no other
// process. It is called every second for every knob's lock, so it makes one system call and
// allocates nothing else.
func (l *Lock) There() bool {
	var at syscall.Stat_t
	return syscall.Stat(l.file.Name(), &at) == nil && at.Dev == l.device && at.Ino == l.inode
}

// SetContent replaces the content of the lock file, padded with blanks to the old length: one
// write, so that an interruption leaves either the old or the new content. It cuts a file longer
// than [MaxRead], which no honest program wrote.
func (l *Lock) SetContent(b []byte) error {
	info, err := l.file.Stat()
	if err == nil && info.Size() > MaxRead {
		if err = l.file.Truncate(0); err == nil {
			info, err = l.file.Stat()
		}
	}
	if err != nil {
		return fmt.Errorf("mark lock: %w", err)
	}
	if more := int(info.Size()) - len(b); more > 0 {
		b = append(bytes.Clone(b), bytes.Repeat([]byte(" "), more)...)
	}
	if _, err := l.file.WriteAt(b, 0); err != nil {
		return fmt.Errorf("mark lock: %w", err)
	}
	return nil
}

// Close releases the lock, even if a forked child that did not start its program yet still has
// the file.
func (l *Lock) Close() error {
	return errors.Join(syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
}

// Remove removes the file and releases the lock, if it will not be needed again. A process that
// waits for it takes the next file at the path.
func (l *Lock) Remove() error {
	var err error
	if l.There() {
		err = os.Remove(l.file.Name())
	}
	return errors.Join(err, l.Close())
}
