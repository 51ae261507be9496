package perf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// MaxThreads is how many threads of one group are read, maxAllThreads of all groups: at
// some 3 µs each.
const (
	MaxThreads    = 2000
	maxAllThreads = 10_000
)

// thread is how long a thread was on a CPU and waited for one, in ns.
type thread struct{ ran, waited uint64 }

// parseThread reads /proc/TID/schedstat. Its form (sched-stats.rst): time on the CPU and
// time on a run queue in ns, number of time slices:
//
//	744035 119897 3
func parseThread(text string) (thread, error) {
	fields := strings.Fields(text)
	if len(fields) != 3 {
		return thread{}, trimtab.Invalidf("schedstat %.60q: want three numbers", text)
	}
	ran, err := strconv.ParseUint(fields[0], 10, 63)
	waited, bad := strconv.ParseUint(fields[1], 10, 63)
	if err != nil || bad != nil {
		return thread{}, trimtab.Invalidf("schedstat %.60q: want three numbers", text)
	}
	return thread{ran, waited}, nil
}

// threadReader reads the threads of control groups.
type threadReader struct {
	proc string
	// left is how many may still be read in this round.
	left   int
	buffer [128]byte
}

// errTooMany: a group has more threads than are read.
var errTooMany = errors.New("more threads than are read")

// read reads the threads of a group and of the groups beneath it, by number.
func (t *threadReader) read(root *hostfs.Root, group string) (map[int]thread, error) {
	out := map[int]thread{}
	file := "cgroup.threads"
	if root.CgroupVersion(group) == 1 {
		file = "tasks"
	}
	each := func(dir string) error {
		text, err := root.Read(path.Join(dir, file))
		if dir != group && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)) {
			return nil // it went meanwhile
		}
		if err != nil {
			return err
		}
		return t.all(text, out)
	}
	var err error
	if alone(filepath.Join(root.Path(), group)) {
		err = each(group)
	} else {
		err = root.Walk(group, each)
	}
	if err != nil {
		return nil, fmt.Errorf("read threads of %s: %w", group, err)
	}
	return out, nil
}

// all reads the threads of a list.
func (t *threadReader) all(list string, out map[int]thread) error {
	for line := range strings.Lines(list) {
		tid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil || tid <= 0 {
			continue
		}
		if t.left--; t.left < 0 || len(out) == MaxThreads {
			return errTooMany
		}
		if v, ok := t.one(tid); ok {
			out[tid] = v
		}
	}
	return nil
}

// alone reports whether a control group surely has none beneath it: its directory is
// linked from itself and its parent, and from each child. To list it instead takes 50 us,
// for the 60 files that are in it.
func alone(dir string) bool {
	var s unix.Stat_t
	return unix.Stat(dir, &s) == nil && s.Nlink == 2
}

// one reads one thread; ok is false where it ended. Three system calls, where
// [os.ReadFile] takes seven.
func (t *threadReader) one(tid int) (v thread, ok bool) {
	fd, err := unix.Open(t.proc+"/"+strconv.Itoa(tid)+"/schedstat", os.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return thread{}, false
	}
	defer func() { _ = unix.Close(fd) }()
	n, err := unix.Read(fd, t.buffer[:])
	if err != nil {
		return thread{}, false
	}
	v, err = parseThread(string(t.buffer[:n]))
	return v, err == nil
}

// waiting compares two readings of the threads of one group: the time that those which
// are in both ran, and the time that they waited, in ns. A thread that counts less than
// before is another one of the same number.
func waiting(before, after map[int]thread) (ran, waited float64) {
	for tid, is := range after {
		was, ok := before[tid]
		if !ok || is.ran < was.ran || is.waited < was.waited {
			continue
		}
		ran, waited = ran+float64(is.ran-was.ran), waited+float64(is.waited-was.waited)
	}
	return ran, waited
}
