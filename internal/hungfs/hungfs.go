// Package hungfs mounts a file system that does not answer, for tests: a FUSE one
// whose server reads each request and never replies, as of an NFS server that is gone.
// Who looks at a name in it waits in the kernel, where no signal ends it, until the
// test ends.
package hungfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// The request and the reply that make a file system ready:
// https://www.kernel.org/doc/html/latest/filesystems/fuse.html, linux/fuse.h.
const (
	headerIn, headerOut, initOut  = 40, 16, 64
	opForget, opInit, opInterrupt = 2, 26, 36
	major, minor                  = 7, 31
	maxRequest                    = 1 << 20
	// parallelDirOps allows concurrent look-ups in one directory.
	parallelDirOps = 1 << 18
)

// FS is a mounted file system.
type FS struct {
	Dir string
	// Asked gets a value when a request arrived that is never answered: no signal ends its caller
	// from then on.
	Asked <-chan struct{}

	release func() error
}

// Release unmounts it: all that wait go on, with an error. The end of the test does so
// too.
func (f *FS) Release() error { return f.release() }

// Mount mounts a file system. The test is skipped where it cannot, for want of root or /dev/fuse.
func Mount(t testing.TB) *FS {
	t.Helper()
	dir := t.TempDir()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("no FUSE: %v", err)
	}
	if err := unix.Mount("hungfs", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd)); err != nil {
		_ = unix.Close(fd)
		t.Skipf("mount a FUSE file system: %v", err)
	}
	asked, done := make(chan struct{}, 100), make(chan struct{})
	go func() { defer close(done); serve(fd, asked) }()
	release := sync.OnceValue(func() error {
		// A forced unmount ends all requests, even those that ignore signals.
		err := unix.Unmount(dir, unix.MNT_FORCE|unix.MNT_DETACH)
		<-done
		return errors.Join(err, unix.Close(fd))
	})
	t.Cleanup(func() {
		if err := release(); err != nil {
			t.Error("unmount:", err)
		}
	})
	return &FS{Dir: dir, Asked: asked, release: release}
}

// serve answers the first request and no other, until the file system is unmounted.
func serve(fd int, asked chan<- struct{}) {
	in := make([]byte, maxRequest)
	for {
		n, err := unix.Read(fd, in)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil || n < headerIn {
			return
		}
		op := binary.NativeEndian.Uint32(in[4:])
		if op != opInit && op != opInterrupt && op != opForget {
			select {
			case asked <- struct{}{}:
			default:
			}
		}
		if op != opInit {
			continue
		}
		out := make([]byte, headerOut+initOut)
		binary.NativeEndian.PutUint32(out, uint32(len(out)))
		copy(out[8:16], in[8:16]) // which request
		binary.NativeEndian.PutUint32(out[16:], major)
		binary.NativeEndian.PutUint32(out[20:], minor)
		binary.NativeEndian.PutUint32(out[28:], parallelDirOps)
		binary.NativeEndian.PutUint32(out[36:], 4096) // max_write
		if _, err := unix.Write(fd, out); err != nil {
			return
		}
	}
}
