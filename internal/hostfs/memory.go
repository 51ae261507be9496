package hostfs

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// LimitMemory bounds what this process may allocate from now on, in bytes: beyond it allocations
// fail, and a Go program ends with an error. It is for a process that is then restarted, and that
// must not use up the host's memory whatever it reads. Child processes inherit the bound.
func LimitMemory(more uint64) error {
	now, err := writableMemory()
	if err != nil {
		return fmt.Errorf("limit memory: %w", err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_DATA, &limit); err != nil {
		return fmt.Errorf("limit memory: %w", err)
	}
	limit.Cur = min(limit.Max, now+more)
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &limit); err != nil {
		return fmt.Errorf("limit memory: %w", err)
	}
	return nil
}

// writableMemory returns how many bytes of private writable memory this process has mapped, used
// or not: the value that RLIMIT_DATA limits.
func writableMemory() (uint64, error) {
	const file = "/proc/self/status"
	b, err := ReadFile(file, MaxRead)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmData:"); ok {
			kib, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 50)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("read %s: no VmData", file)
}
