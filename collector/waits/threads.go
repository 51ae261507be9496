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

// MaxThreads is how many threads of one group are read, at some 3 µs each.
const MaxThreads = 2000

// Thread is how long a thread was on a CPU and waited for one, in ns.
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

// Threads reads the threads of control groups.
type Threads struct {
	// Proc is where the kernel tells of processes; "": /proc.
	Proc string
	// Left is how many may still be read in this round.
	Left   int
	buffer [128]byte
}

// ErrTooMany says that there is more than is read.
var ErrTooMany = errors.New("more than is read")

// Read reads the threads of a group and of the groups beneath it, by number.
func (t *Threads) Read(root *hostfs.Root, group string) (map[int]Thread, error) {
	out := map[int]Thread{}
	file := "cgroup.threads"
	if root.CgroupVersion(group) == 1 {
		file = "tasks"
	}
	err := Numbers(root, group, file, func(tid int) error {
		if t.Left--; t.Left < 0 || len(out) == MaxThreads {
			return ErrTooMany
		}
		if v, ok := t.One(tid); ok {
			out[tid] = v
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read threads of %s: %w", group, err)
	}
	return out, nil
}

// Numbers calls f with each number in a file of a group and of the groups beneath it.
func Numbers(root *hostfs.Root, group, file string, f func(n int) error) error {
	each := func(dir string) error {
		text, err := root.Read(path.Join(dir, file))
		if dir != group && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)) {
			return nil // it went meanwhile
		}
		if err != nil {
			return err
		}
		for line := range strings.Lines(text) {
			n, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil || n <= 0 { // 0: it is in another namespace of processes
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

// alone reports whether a control group surely has none beneath it: its directory is
// linked from itself and its parent, and from each child. To list it instead takes 50 us,
// for the 60 files that are in it.
func alone(dir string) bool {
	var s unix.Stat_t
	return unix.Stat(dir, &s) == nil && s.Nlink == 2
}

// One reads one thread; ok is false where it ended. Three system calls, where
// [os.ReadFile] takes seven.
func (t *Threads) One(tid int) (v Thread, ok bool) {
	fd, err := unix.Open(procOf(t.Proc)+"/"+strconv.Itoa(tid)+"/schedstat", os.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Thread{}, false
	}
	defer func() { _ = unix.Close(fd) }()
	n, err := unix.Read(fd, t.buffer[:])
	if err != nil {
		return Thread{}, false
	}
	v, err = ParseThread(string(t.buffer[:n]))
	return v, err == nil
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

// procOf is where the kernel tells of processes.
func procOf(dir string) string { return cmp.Or(dir, "/proc") }
