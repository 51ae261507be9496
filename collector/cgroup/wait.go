package cgroup

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/waits"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// What waits is read of groups that may wait alone, since it takes several reads for each
// thread and process: of one that its limit, or that of a group above, stopped, that uses
// nearly all that it has, and of all that run while the CPUs of the host are used up.

const (
	// readThreads and readFiles are how many threads, and descriptors of processes, are read
	// in a round at most, at some 3 µs and 2 µs each. Groups for which nothing is left have
	// their turn first in the next round.
	readThreads, readFiles = 1000, 4000
	// mayWait is the share of the periods in which a group is stopped, nearAll that of what it
	// has which it uses, from which on it may wait.
	mayWait, nearAll = 0.1, 0.8
	// suspectFor is for how many rounds one is read that may wait: what waits is known by two
	// readings, and a thread's time is counted when it runs again, in the next period of a quota.
	suspectFor = 6
	// leastUse is what one uses, in cores, that is looked at for no more than that the host is full.
	leastUse = 0.02
	// idleNone is the part of the host's CPUs which is idle at most while they are used up.
	idleNone = 0.05
)

// Sources of what waits.
const (
	sourceThreads = "schedstat"
	sourceSockets = "sockets"
)

// many is why something is missing of which there is more than is read.
const many = "more than is read"

// threads is what was read of the threads of a group.
type threads struct {
	at time.Duration
	of map[int]waits.Thread
}

// waiter reads what waits.
type waiter struct {
	threads waits.Threads
	sockets waits.Sockets
	// idle is how long the CPUs of the host were idle, all together, up to at.
	idle, at time.Duration
	// full tells that they are used up.
	full bool
	// first is the target that has its turn first, out is the first for which nothing was left.
	first, out int
}

// begin begins a round.
func (w *waiter) begin() {
	w.threads.Left = readThreads
	w.sockets.Begin(readFiles)
	w.first, w.out = max(w.out, 0), -1
	at, idle := hostfs.BootTime(), time.Duration(-1)
	if text, err := os.ReadFile("/proc/uptime"); err == nil {
		idle = idleOf(string(text))
	}
	w.full = w.at > 0 && w.idle >= 0 && idle >= w.idle && (idle-w.idle).Seconds() < idleNone*float64(runtime.NumCPU())*(at-w.at).Seconds()
	w.idle, w.at = idle, at
}

// idleOf reads /proc/uptime: seconds since the host booted, and those for which its CPUs were
// idle, all together. Below 0: it cannot be read.
func idleOf(text string) time.Duration {
	_, idle, _ := strings.Cut(strings.TrimSpace(text), " ")
	v, err := strconv.ParseFloat(idle, 64)
	if err != nil || !(v >= 0 && v < 1e9) {
		return -1
	}
	return time.Duration(v * float64(time.Second))
}

// suspects reports whether a group may wait, by its use, the share of periods in which it was
// stopped, and what it has.
func suspects(usage, throttled, allocation *trimtab.Sample, full bool) bool {
	if usage.Missing != "" {
		return false
	}
	return full && usage.Value >= leastUse || throttled.Missing == "" && throttled.Value >= mayWait || allocation.Missing == "" && usage.Value >= nearAll*allocation.Value
}

// wait reads what waits of the group of target i, if it may wait, at the time of the samples of
// its use, which come after it: they are joined with it.
func (c *Collector) wait(i int, g *group, samples []*trimtab.Sample) []*trimtab.Sample {
	w := &c.waiter
	if g.suspect--; suspects(samples[0], samples[1], samples[2], w.full) {
		g.suspect = suspectFor
	}
	if g.suspect <= 0 || samples[0].Missing != "" {
		g.suspect, g.threads = 0, nil
		return nil
	}
	waited, queued := *samples[0], *samples[0]
	waited.Quantity, waited.Source, waited.Value = trimtab.Waited, sourceThreads, 0
	queued.Quantity, queued.Source, queued.Value = trimtab.Queued, sourceSockets, 0
	after := &threads{at: hostfs.BootTime()}
	var err error
	after.of, err = w.threads.Read(c.members, g.Path)
	switch {
	case err != nil && w.threads.Left < 0: // over a longer window, when it has its turn
		waited.Missing = many
		if w.out < 0 {
			w.out = i
		}
	case err != nil:
		g.threads, waited.Missing = nil, whyNot(err)
	case g.threads == nil:
		g.threads, waited.Missing = after, first
	default:
		waited.Value = waitedOf(g.threads, after)
		waited.Window = trimtab.SecondsOf(after.at - g.threads.at)
		g.threads = after
	}
	n, err := w.sockets.Queued(c.members, g.Path)
	if queued.Value = float64(n); err != nil {
		queued.Value, queued.Missing = 0, whyNot(err)
	}
	return []*trimtab.Sample{&waited, &queued}
}

// waitedOf is for how many seconds of each second threads waited for a CPU, all together.
func waitedOf(before, after *threads) float64 {
	window := after.at - before.at
	if window <= 0 {
		return 0
	}
	_, waited := waits.Between(before.of, after.of)
	return waited / float64(window)
}

// whyNot is why what waits cannot be told.
func whyNot(err error) string {
	switch {
	case errors.Is(err, waits.ErrTooMany), errors.Is(err, trimtab.ErrRefused):
		return many
	case errors.Is(err, os.ErrPermission):
		return "may not be read: that takes CAP_SYS_PTRACE"
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENODEV):
		return absent
	}
	return unreadable
}
