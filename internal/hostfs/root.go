package hostfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
)

// MaxRead is the most that [Root.Read] returns; a longer file is an error.
const MaxRead = 64 << 10

// Filesystem is the kind of file system that a root lies on, by its magic
// number.
type Filesystem string

// The kinds that matter here.
const (
	// Cgroup1 is one hierarchy of version 1, or several mounted together.
	Cgroup1 Filesystem = "cgroup"
	// Cgroup2 is the unified hierarchy.
	Cgroup2 Filesystem = "cgroup2"
	// Resctrl is the file system of cache and bandwidth allocation (RDT).
	Resctrl Filesystem = "resctrl"
	// Ordinary is anything else: a tree of plain files.
	Ordinary Filesystem = "ordinary"
)

// Root is a declared directory. Its methods take paths relative to it, with slashes, and refuse
// any that leaves it, by a link, by ".." or over a mount, with an error that is
// trimtab.ErrRefused. They are safe for concurrent use.
type Root struct {
	dir   *os.Root
	path  string
	kind  Filesystem
	mount uint64
	whole bool // see Whole
	// opened is the directory as an open file; self gives access to its descriptor.
	opened *os.File
	self   syscall.RawConn
	// more is how many have it besides the one that opened it; below 0: closed.
	more atomic.Int64
	kept kept
}

// Share returns r for another to close; nil when it is closed already.
func (r *Root) Share() *Root {
	for {
		n := r.more.Load()
		if n < 0 {
			return nil
		}
		if r.more.CompareAndSwap(n, n+1) {
			return r
		}
	}
}

// OpenRoot opens the directory at path, which may itself be a link.
func OpenRoot(path string) (*Root, error) {
	dir, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open root: %w", err)
	}
	r := &Root{dir: dir, path: filepath.Clean(path)}
	if err := r.identify(); err != nil {
		r.Close()
		return nil, fmt.Errorf("open root %s: %w", path, err)
	}
	return r, nil
}

// Sub opens a directory of the root as a root of its own: a path that leaves
// it, also for another one in r, is refused there.
func (r *Root) Sub(name string) (*Root, error) {
	// Not os.Root.OpenRoot, which waits where there is a pipe instead.
	f, err := r.open(name, os.O_RDONLY|syscall.O_DIRECTORY)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", r.join(name), err)
	}
	defer f.Close()
	dir, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", r.join(name), err)
	}
	sub := &Root{dir: dir, path: r.join(name)}
	if err := sub.identify(); err != nil {
		sub.Close()
		return nil, fmt.Errorf("open %s: %w", sub.path, err)
	}
	return sub, nil
}

// identify records the type of the file system and the mount.
func (r *Root) identify() error {
	f, err := r.dir.Open(".")
	if err != nil {
		return err
	}
	r.opened = f
	if r.self, err = f.SyscallConn(); err != nil {
		return err
	}
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &s); err != nil {
		return fmt.Errorf("statfs: %w", err)
	}
	switch s.Type {
	case unix.CGROUP_SUPER_MAGIC:
		r.kind = Cgroup1
	case unix.CGROUP2_SUPER_MAGIC:
		r.kind = Cgroup2
	case unix.RDTGROUP_SUPER_MAGIC:
		r.kind = Resctrl
	default:
		r.kind = Ordinary
	}
	var own unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &own); err != nil {
		return fmt.Errorf("stat: %w", err)
	}
	r.whole = (r.kind == Cgroup1 || r.kind == Cgroup2) && own.Ino == 1
	r.mount, err = mountOf(f)
	return err
}

// Whole reports whether the root is the root of a whole cgroup hierarchy, whose inode number is 1:
// it has no limits.
func (r *Root) Whole() bool { return r.whole }

// mountOf identifies the mount of a file: by the mount's number (Linux 5.8), else by the device.
func mountOf(f *os.File) (uint64, error) {
	var x unix.Statx_t
	err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &x)
	if err != nil {
		return 0, fmt.Errorf("statx: %w", err)
	}
	if x.Mask&unix.STATX_MNT_ID != 0 {
		return x.Mnt_id, nil
	}
	return unix.Mkdev(x.Dev_major, x.Dev_minor), nil
}

// Path returns the directory that was opened.
func (r *Root) Path() string { return r.path }

// Filesystem returns the kind of file system that the root lies on.
func (r *Root) Filesystem() Filesystem { return r.kind }

// Close releases the directory, once all who share it have closed it.
func (r *Root) Close() error {
	if r.more.Add(-1) >= 0 {
		return nil
	}
	r.kept.forget()
	err := r.dir.Close()
	if r.opened != nil {
		err = errors.Join(err, r.opened.Close())
	}
	return err
}

// open opens name without leaving the root. It is non-blocking, so that a pipe in place of a file
// cannot hang the caller.
func (r *Root) open(name string, flags int) (*os.File, error) {
	f, err := r.dir.OpenFile(filepath.FromSlash(name), flags|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, r.outside(err)
	}
	mount, err := mountOf(f)
	if err == nil && mount != r.mount {
		err = fmt.Errorf("it lies on another mount: %w", trimtab.ErrRefused)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// outside marks the errors by which os.Root reports that a path escapes.
func (r *Root) outside(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return fmt.Errorf("%w: %w", err, trimtab.ErrRefused)
	}
	return err
}

// file opens a regular file. One that is written is open as a shell opens it: since Linux
// 6.16 a memory limit that is written through a descriptor with O_NONBLOCK reclaims nothing.
func (r *Root) file(name string, flags int) (*os.File, error) {
	f, err := r.open(name, flags)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("not a regular file: %w", trimtab.ErrRefused)
	}
	if err == nil && flags&(os.O_WRONLY|os.O_RDWR) != 0 {
		err = blocking(f)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// blocking clears O_NONBLOCK on an open file, and keeps its other flags.
func blocking(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return cause(err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.SetNonblock(int(fd), false) }); err != nil {
		return cause(err)
	}
	return failed
}

// Read returns the content of a file of at most [MaxRead] bytes.
func (r *Root) Read(name string) (string, error) {
	text, done, err := r.quick(name)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", r.join(name), err)
	}
	if done {
		return text, nil
	}
	return r.ReadLong(name, MaxRead)
}

// Write writes value to an existing file in one write(2). An ordinary file is then cut to the
// value's length; readers take the first line, so that an interruption in between does no harm.
func (r *Root) Write(name, value string) error {
	if err := r.write(name, value); err != nil {
		return fmt.Errorf("write %s %.60q: %w", r.join(name), value, err)
	}
	return nil
}

func (r *Root) write(name, value string) error {
	f, err := r.file(name, os.O_WRONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	return writeWhole(f, value, r.kind)
}

// writeWhole writes a value in one write(2), and cuts an ordinary file to it. It does not use
// os.File.Write, which continues after a short write: a kernel file would take the rest for a second
// value. A signal, as the runtime sends them, ends version 1's search for memory to reclaim before
// any effect.
func writeWhole(f *os.File, value string, kind Filesystem) error {
	n, err := syscall.Pwrite(int(f.Fd()), []byte(value), 0)
	for errors.Is(err, syscall.EINTR) {
		n, err = syscall.Pwrite(int(f.Fd()), []byte(value), 0)
	}
	switch {
	case err != nil:
		return err
	case n != len(value):
		return fmt.Errorf("wrote %d of %d bytes: %w", n, len(value), io.ErrShortWrite)
	case kind == Ordinary:
		return cause(f.Truncate(int64(n)))
	}
	return nil
}

// Writable returns nil if this process may write an existing file, or why not, without opening it
// for writing.
func (r *Root) Writable(name string) error {
	f, err := r.file(name, os.O_RDONLY)
	if err == nil {
		defer f.Close()
		err = unix.Faccessat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.W_OK, unix.AT_EACCESS)
	}
	if err != nil {
		return fmt.Errorf("may not write %s: %w", r.join(name), err)
	}
	return nil
}

// Exists reports whether name exists, and an error if that is unknown.
func (r *Root) Exists(name string) (bool, error) {
	err := r.quickLook(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		_, err = r.dir.Stat(filepath.FromSlash(name))
	}
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	}
	return false, fmt.Errorf("look for %s: %w", r.join(name), r.outside(err))
}

// Mkdir makes one directory; its parent must exist.
func (r *Root) Mkdir(name string) error {
	if err := r.dir.Mkdir(filepath.FromSlash(name), 0o755); err != nil {
		return fmt.Errorf("make %s: %w", r.join(name), r.outside(err))
	}
	return nil
}

// Rmdir removes one directory that is empty, which a cgroup without children
// and processes counts as.
func (r *Root) Rmdir(name string) error {
	parent, base := filepath.Split(filepath.FromSlash(filepath.Clean(name)))
	f, err := r.open(filepath.Join(".", parent), os.O_RDONLY|syscall.O_DIRECTORY)
	if err != nil {
		return fmt.Errorf("remove %s: %w", r.join(name), err)
	}
	defer f.Close()
	if err := unix.Unlinkat(int(f.Fd()), base, unix.AT_REMOVEDIR); err != nil {
		return fmt.Errorf("remove %s: %w", r.join(name), err)
	}
	return nil
}

func (r *Root) join(name string) string { return filepath.Join(r.path, strings.TrimPrefix(name, "/")) }

// cause drops the path that the os package repeats.
func cause(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

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
