package hostfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
)

// Lock is an exclusive hold on a directory, until Close or the end of the
// process, however it ends. Children do not inherit it.
type Lock struct{ file *os.File }

// TakeLock takes the lock file in dir, waiting at most the given time for
// another holder to let go; then the error is trimtab.ErrRefused.
func TakeLock(ctx context.Context, dir string, wait time.Duration) (*Lock, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("take lock: %w", err)
	}
	deadline := BootTime() + wait
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return &Lock{file: f}, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("take lock in %s: %w", dir, err)
		}
		if BootTime() >= deadline {
			f.Close()
			return nil, fmt.Errorf("take lock in %s: another process holds it: %w", dir, trimtab.ErrRefused)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("take lock in %s: %w", dir, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Close lets go.
func (l *Lock) Close() error { return l.file.Close() }
