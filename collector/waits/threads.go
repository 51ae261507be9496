package waits

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

const (
	// MaxThreads is the largest number of threads of one group that are read, at some 3 µs each.
	MaxThreads = 2000
	// maxDirs is the largest number of directories that are searched for threads or processes.
	maxDirs = 200
)

// Thread is how long a thread ran on a CPU and waited for one, in ns.
type Thread struct{ Ran, Waited uint64 }

// ParseThread reads /proc/TID/schedstat. Its form (sched-stats.rst): time on the CPU and
// time on a run queue in ns, number of time slices:
//
//	744035 119897 3
func ParseThread(text string) (Thread, error) {
	fields := strings.Fields(text)
	if len(fields) != 3 {
		return Thread{}, trimtab.Invalidf("schedstat %.60q: want three numbers", text)
	}
	ran, err := strconv.ParseUint(fields[0], 10, 63)
	waited, bad := strconv.ParseUint(fields[1], 10, 63)
	if err != nil || bad != nil {
		return Thread{}, trimtab.Invalidf("schedstat %.60q: want three numbers", text)
	}
	return Thread{ran, waited}, nil
}

// Why a group has no value.
var (
	// ErrTooMany says that there is more than is read.
	ErrTooMany = errors.New("more than is read")
	// ErrLater says that nothing was left for it in this round. It should come first in the next.
	ErrLater = errors.New("more than is read in a round")
	// ErrTurn says that another namespace has its turn.
	ErrTurn = errors.New("network namespaces are read in turn")
	// ErrUnseen says that its processes are in another namespace, or hidden (ProtectProc).
	ErrUnseen = fmt.Errorf("its processes cannot be seen from here: %w", fs.ErrPermission)
)

// Threads reads the threads of control groups.
type Threads struct {
	// Proc is where procfs is mounted; "": /proc.
	Proc string
	// left is how many threads may still be read in this round, most how many of one group, dirs
	// in how many directories they may be searched.
	left, most, dirs int
	buffer           [128]byte
}

// Begin begins a round, in which at most threads threads may be read.
func (t *Threads) Begin(threads int) {
	t.left, t.most, t.dirs = threads, min(threads, MaxThreads), max(maxDirs, threads/2)
}

// Read reads the threads of a group and of the groups beneath it, by number. runs: it uses CPU,
// so it must have some.
func (t *Threads) Read(root *hostfs.Root, group string, runs bool) (out map[int]Thread, err error) {
	defer func() {
		if err != nil {
			out, err = nil, fmt.Errorf("read threads of %s: %w", group, err)
		}
	}()
	file := "cgroup.threads"
	if root.CgroupVersion(group) == 1 {
		file = "tasks"
	}
	var all []int
	err = Numbers(root, group, file, &t.dirs, func(tid int) error {
		switch {
		case tid == 0:
			return ErrUnseen
		case len(all) == t.most:
			return ErrTooMany
		}
		all = append(all, tid)
		return nil
	})
	if err == nil && len(all) > t.left {
		err = ErrLater
	}
	if err != nil {
		return nil, err
	}
	t.left -= len(all)
	out = make(map[int]Thread, len(all))
	for _, tid := range all {
		v, err := t.One(tid)
		if errors.Is(err, fs.ErrPermission) {
			return nil, ErrUnseen
		}
		if err == nil {
			out[tid] = v
		}
	}
	if 2*len(out) < len(all) || len(all) == 0 && runs { // only few threads end meanwhile
		return nil, ErrUnseen
	}
	return out, nil
}

// Numbers calls f with each number in a file of a group and of the groups beneath it, of which
// left may still be read. 0 stands for a process that is not visible in this PID namespace.
func Numbers(root *hostfs.Root, group, file string, left *int, f func(n int) error) error {
	dirs := 0
	each := func(dir string) error {
		if dirs++; dirs > maxDirs {
			return ErrTooMany
		}
		if *left--; *left < 0 {
			return ErrLater
		}
		text, err := root.Read(path.Join(dir, file))
		switch {
		case dir != group && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)):
			return nil // the group was removed meanwhile
		case errors.Is(err, trimtab.ErrInvalid): // longer than [hostfs.MaxRead]
			return fmt.Errorf("%w: %w", ErrTooMany, err)
		case err != nil:
			return err
		}
		for line := range strings.Lines(text) {
			n, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil || n < 0 {
				continue
			}
			if err := f(n); err != nil {
				return err
			}
		}
		return nil
	}
	if alone(filepath.Join(root.Path(), group)) {
		return each(group)
	}
	return root.Walk(group, each)
}

// alone reports whether a control group surely has none beneath it: its directory has a link from
// itself, its parent, and each child. Listing it would take 50 us, for its 60 files.
func alone(dir string) bool {
	var s unix.Stat_t
	return unix.Stat(dir, &s) == nil && s.Nlink == 2
}

// One reads one thread, by three system calls where [os.ReadFile] takes seven.
func (t *Threads) One(tid int) (Thread, error) {
	fd, err := unix.Open(procOf(t.Proc)+"/"+strconv.Itoa(tid)+"/schedstat", os.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Thread{}, err
	}
	defer func() { _ = unix.Close(fd) }()
	n, err := unix.Read(fd, t.buffer[:])
	if err != nil {
		return Thread{}, err
	}
	return ParseThread(string(t.buffer[:n]))
}

// RealTime reports whether a thread has a real-time class, which waits for no weight and, but on
// kernels that group it, for no quota.
func RealTime(tid int) bool {
	a, err := unix.SchedGetAttr(tid, 0)
	return err == nil && slices.Contains([]uint32{unix.SCHED_FIFO, unix.SCHED_RR, unix.SCHED_DEADLINE}, a.Policy)
}

// Between compares two readings of the threads of one group: the time that those which
// are in both ran, and the time that they waited, in ns. A thread that counts less than
// before is another one of the same number.
func Between(before, after map[int]Thread) (ran, waited float64) {
	for tid, is := range after {
		was, ok := before[tid]
		if !ok || is.Ran < was.Ran || is.Waited < was.Waited {
			continue
		}
		ran, waited = ran+float64(is.Ran-was.Ran), waited+float64(is.Waited-was.Waited)
	}
	return ran, waited
}

// procOf returns the directory of the kernel's files about processes.
func procOf(dir string) string { return cmp.Or(dir, "/proc") }
