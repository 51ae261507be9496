package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"syscall"
	"time"
)

// ownNice is trimtab's own nice value: it must decide just when the host is full, and a leader
// that gets no CPU loses its lock.
const ownNice = -5

// raiseOwnWeight gives this process priority on a full CPU, where it may; later threads inherit
// it. It leaves alone a nice value that a service manager set. Without the right to it
// (CAP_SYS_NICE, or nice in limits.conf) trimtab works the same, only slower on a full host.
func raiseOwnWeight(logger *slog.Logger) {
	// A thread that was being made during a look has the old rank and is seen
	// by the next one.
	for quiet := 0; quiet < 3; quiet++ {
		raised, err := raiseThreads()
		if err != nil {
			logger.Debug("raise own weight", "nice", ownNice, "err", err)
			return
		}
		if raised {
			quiet = 0
		}
		time.Sleep(time.Millisecond)
	}
}

// raiseThreads raises the priority of the threads that still have the default, and reports
// whether there were any.
func raiseThreads() (raised bool, err error) {
	for _, thread := range threads() {
		now, err := syscall.Getpriority(syscall.PRIO_PROCESS, thread)
		if nice := 20 - now; err == nil && nice == 0 { // the kernel returns 20 - nice
			err = syscall.Setpriority(syscall.PRIO_PROCESS, thread, ownNice)
			raised = raised || err == nil
		}
		if err != nil && !errors.Is(err, syscall.ESRCH) { // ESRCH: the thread has ended
			return raised, err
		}
	}
	return raised, nil
}

// threads returns the threads of this process: Linux ranks each by itself.
func threads() (all []int) {
	entries, err := os.ReadDir("/proc/self/task")
	if errors.Is(err, fs.ErrNotExist) {
		return []int{0} // the calling thread
	}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, n)
		}
	}
	return all
}
