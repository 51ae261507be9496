package hostfs

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// LimitMemory bounds what this process may allocate from now on, in bytes: beyond it the
// kernel gives none, and a Go program ends with an error. It is for a process that is
// started again then, and that must not take the memory of the whole host whatever it
// has to read. Processes that it starts inherit the bound.
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

// writableMemory is how much memory of its own this process has mapped to write to, in
// bytes, used or not: what RLIMIT_DATA is compared with.
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
