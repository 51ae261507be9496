package perf

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// event is one event that the kernel counts, with perf's name for it.
type event struct {
	name   string
	kind   uint32
	config uint64
}

// software are the events that every kernel counts, in the order of [set.Counts].
func software() []event {
	return []event{
		{"task-clock", unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_TASK_CLOCK},
		{"context-switches", unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CONTEXT_SWITCHES},
		{"page-faults", unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_PAGE_FAULTS},
		{"cpu-migrations", unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_MIGRATIONS},
	}
}

// The indices of software and hardware events in [set.Counts].
const (
	taskClock = iota
	contextSwitches
	pageFaults
	migrations
)

const (
	cycles = iota
	instructions
	misses
	references
)

// hardware are the events that a CPU may count. Misses and references are of the last
// level of caches on Intel's CPUs; of AMD's they are of the level before.
func hardware() []event {
	return []event{
		{"cycles", unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES},
		{"instructions", unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_INSTRUCTIONS},
		{"cache-misses", unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CACHE_MISSES},
		{"cache-references", unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CACHE_REFERENCES},
	}
}

// reads returns events for reads of the last cache level, which replace the last two if these are
// not counted.
func reads() []event {
	const read = unix.PERF_COUNT_HW_CACHE_LL | unix.PERF_COUNT_HW_CACHE_OP_READ<<8
	return []event{
		{"LLC-load-misses", unix.PERF_TYPE_HW_CACHE, read | unix.PERF_COUNT_HW_CACHE_RESULT_MISS<<16},
		{"LLC-loads", unix.PERF_TYPE_HW_CACHE, read | unix.PERF_COUNT_HW_CACHE_RESULT_ACCESS<<16},
	}
}

// attrSize is the size of perf_event_attr in the first kernels that had it: no later
// field is in use, so that all kernels know it.
const attrSize = 64

// open opens the event on one CPU: for the control group whose directory is dir, for everything
// if dir is nil. leader is -1 or the leader of the group of events. The event counts at once:
// some kernels never count events of a control group that begin disabled.
func (e event) open(dir *os.File, cpu, leader int) (int, error) {
	attr := unix.PerfEventAttr{
		Type: e.kind, Size: attrSize, Config: e.config,
		Read_format: unix.PERF_FORMAT_GROUP | unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING,
	}
	pid, flags := -1, unix.PERF_FLAG_FD_CLOEXEC
	if dir != nil {
		pid, flags = int(dir.Fd()), flags|unix.PERF_FLAG_PID_CGROUP
	}
	fd, err := unix.PerfEventOpen(&attr, pid, cpu, leader, flags)
	if err != nil {
		return -1, fmt.Errorf("count %s on CPU %d: %w", e.name, cpu, err)
	}
	return fd, nil
}
