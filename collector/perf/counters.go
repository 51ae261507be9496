package perf

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// MaxDescriptors is the largest number of open counters.
const MaxDescriptors = 65536

// spared is the number of descriptors reserved for the rest of the process.
const spared = 64

// counters has the counters of one control group on all CPUs.
type counters struct {
	// leaders are the first of the software and of the hardware events on each CPU; fds
	// are all.
	leaders [2][]int
	fds     []int
	before  [2][]reading
	at      time.Duration
}

// openCounters opens both sets of events on each CPU.
func openCounters(dir *os.File, cpus []int, sets [2][]event) (c *counters, err error) {
	c = &counters{}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	for _, cpu := range cpus {
		for i, events := range sets {
			leader := -1
			for _, e := range events {
				fd, err := e.open(dir, cpu, leader)
				if err != nil {
					return nil, err
				}
				c.fds = append(c.fds, fd)
				if leader < 0 {
					leader = fd
					c.leaders[i] = append(c.leaders[i], fd)
				}
			}
		}
	}
	return c, nil
}

func (c *counters) close() {
	for _, fd := range c.fds {
		_ = unix.Close(fd)
	}
}

// read reads all counters, and returns by how much they rose since the last time.
func (c *counters) read(sets [2][]event) interval {
	at := hostfs.BootTime()
	var out [2]set
	for i, leaders := range c.leaders {
		n := len(sets[i])
		after, err := readAll(leaders, n)
		switch {
		case n == 0:
			out[i] = set{Missing: notCounted}
		case err != nil:
			out[i] = set{Missing: poll.Unreadable}
		default:
			out[i] = rise(c.before[i], after, n)
		}
		c.before[i] = after
	}
	window := at - c.at
	c.at = at
	return interval{Window: window, Software: out[0], Hardware: out[1]}
}

// readAll reads one group of n counters on each CPU.
func readAll(leaders []int, n int) ([]reading, error) {
	out := make([]reading, 0, len(leaders))
	buffer := make([]byte, 8*(header+n))
	for _, fd := range leaders {
		size, err := unix.Read(fd, buffer)
		for errors.Is(err, syscall.EINTR) {
			size, err = unix.Read(fd, buffer)
		}
		if err != nil {
			return nil, fmt.Errorf("read counters: %w", err)
		}
		// Nothing is read of counters on a CPU that went.
		r, err := parseReading(buffer[:size], n)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// onlineCPUs returns the CPUs that are online.
func onlineCPUs() ([]int, error) {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, fmt.Errorf("find CPUs: %w", err)
	}
	cpus := hostfs.ParseCPUs(strings.TrimSpace(string(text)))
	if cpus == nil {
		return nil, trimtab.Invalidf("find CPUs: %.80q: want a list such as 0-3,7", text)
	}
	return cpus, nil
}

// room returns how many descriptors counters may use in this process.
func room() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 1024 - spared
	}
	return max(0, int(min(limit.Cur, MaxDescriptors+spared))-spared)
}
