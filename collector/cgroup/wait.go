package cgroup

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/collector/waits"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/quantity"
)

// Waiting is measured only for groups that may wait, since it takes several reads for each thread
// and process: for a group that its limit, or that of a parent, throttled, for one that uses nearly
// all of its quota, and for all that run while all CPUs of the host are busy.

const (
	// readThreads and readFiles bound how many threads, and descriptors of processes, are read in a
	// round, at some 3 µs and 2 µs each: one group may use all threads, or a quarter of the
	// descriptors. The first group that was not read is the first in the next round.
	readThreads, readFiles = 1000, 4000
	// remembered is for how many rounds the collector remembers that a group is too large to be
	// read completely.
	remembered = 30
	// mayWait is the share of throttled periods, nearAll the share of its allocation in use, from
	// which a group may wait.
	mayWait, nearAll = 0.1, 0.8
	// suspectFor is the number of rounds for which a group that may wait is measured. Waiting is
	// the difference of two readings, and a thread's wait is counted only when it runs again, in
	// the next period of a quota.
	suspectFor = 6
	// leastUse is the usage, in cores, below which a group is not measured for the sole reason that
	// all CPUs of the host are busy.
	leastUse = 0.02
	// idleNone is the part of the host's CPUs which is idle at most while they are used up.
	idleNone = 0.05
)

// Sources of samples of waiting.
const (
	sourceThreads = "schedstat"
	sourceSockets = "sockets"
)

// Why waiting is not known; also labels of the metric.
const (
	many   = "more than is read"
	later  = "is read in turn"
	unseen = "its processes cannot be seen from here"
)

// threads is one reading of a group's threads.
type threads struct {
	at time.Duration
	of map[int]waits.Thread
}

// waiter measures waiting.
type waiter struct {
	threads waits.Threads
	sockets waits.Sockets
	// idle is the total time for which the CPUs of the host were idle, summed over all, up to at.
	idle, at time.Duration
	// full says that they are used up.
	full bool
	// next is the first group for which nothing was left.
	next string
}

// begin begins a round.
func (w *waiter) begin() {
	w.threads.Begin(readThreads)
	w.sockets.Begin(readFiles)
	at, idle, cpus := hostfs.BootTime(), time.Duration(-1), 0
	if text, err := os.ReadFile("/proc/stat"); err == nil {
		idle, cpus = idleOf(string(text))
	}
	w.full = w.at > 0 && w.idle >= 0 && idle >= w.idle && (idle-w.idle).Seconds() < idleNone*float64(cpus)*(at-w.at).Seconds()
	w.idle, w.at = idle, at
}

// idleOf reads /proc/stat: the sum of the CPUs' idle time since the host booted, and the number
// of CPUs. Below 0: it cannot be read. Its form (proc(5)) is a line for each CPU, in hundredths
// of a second, of which the fourth and fifth, idle and iowait, are idle:
//
//	cpu0 10132153 290696 3084719 46828483 16683 0 25195 0 0 0
func idleOf(text string) (idle time.Duration, cpus int) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 6 || !strings.HasPrefix(f[0], "cpu") || f[0] == "cpu" {
			continue
		}
		slept, err := strconv.ParseUint(f[4], 10, 40)
		waited, bad := strconv.ParseUint(f[5], 10, 40)
		if err != nil || bad != nil {
			return -1, 0
		}
		idle, cpus = idle+time.Duration(slept+waited)*(time.Second/100), cpus+1
	}
	if cpus == 0 {
		return -1, 0
	}
	return idle, cpus
}

// suspects reports whether a group may wait, by its usage, the share of periods in which it was
// throttled, and its quota.
func suspects(usage, throttled, allocation *trimtab.Sample, full bool) bool {
	if usage.Missing != "" {
		return false
	}
	return full && usage.Value >= leastUse || throttled.Missing == "" && throttled.Value >= mayWait || allocation.Missing == "" && usage.Value >= nearAll*allocation.Value
}

// wait measures waiting in a group, if it may wait, and gives the result the time of its usage
// samples, so that the analyzer can join them.
func (c *Collector) wait(g *group, samples []*trimtab.Sample) []*trimtab.Sample {
	if g.suspect--; suspects(samples[0], samples[1], samples[2], c.waiter.full) {
		g.suspect = suspectFor
	}
	if g.suspect <= 0 || samples[0].Missing != "" {
		g.suspect, g.threads = 0, nil
		return nil
	}
	waited, queued := *samples[0], *samples[0]
	waited.Quantity, waited.Source, waited.Value = quantity.Waited, sourceThreads, 0
	queued.Quantity, queued.Source, queued.Value = quantity.Queued, sourceSockets, 0
	after := &threads{at: hostfs.BootTime()}
	err := c.look(g, &g.manyThreads, func() (err error) {
		after.of, err = c.waiter.threads.Read(c.members, g.Path, samples[0].Value > 0)
		return err
	})
	switch waited.Missing = whyNot(err); {
	case errors.Is(err, waits.ErrLater): // measured over a longer window, in its turn
	case err != nil:
		g.threads = nil
	case g.threads == nil:
		g.threads, waited.Missing = after, poll.First
	default:
		waited.Value = waitedOf(g.threads, after)
		waited.Window = trimtab.SecondsOf(after.at - g.threads.at)
		g.threads = after
	}
	if !errors.Is(err, waits.ErrUnseen) { // else its sockets cannot be seen either
		err = c.look(g, &g.manySockets, func() error {
			n, err := c.waiter.sockets.Queued(c.members, g.Path)
			queued.Value = float64(n)
			return err
		})
	}
	queued.Missing = whyNot(err)
	return []*trimtab.Sample{&waited, &queued}
}

// look calls read for a group, unless the group had more than may be read and this is before the
// round until. A group that did not get its turn is first in the next round.
func (c *Collector) look(g *group, until *uint64, read func() error) error {
	if c.rounds < *until {
		return waits.ErrTooMany
	}
	err := read()
	switch {
	case errors.Is(err, waits.ErrTooMany):
		*until = c.rounds + remembered
	case errors.Is(err, waits.ErrLater) && c.waiter.next == "":
		c.waiter.next = g.Path
	}
	return err
}

// waitedOf returns for how many seconds of each second threads waited for a CPU, added up over
// threads.
func waitedOf(before, after *threads) float64 {
	window := after.at - before.at
	if window <= 0 {
		return 0
	}
	_, waited := waits.Between(before.of, after.of)
	return waited / float64(window)
}

// whyNot returns why waiting is unknown; "": it is known.
func whyNot(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, waits.ErrTooMany):
		return many
	case errors.Is(err, waits.ErrLater), errors.Is(err, waits.ErrTurn):
		return later
	case errors.Is(err, waits.ErrUnseen):
		return unseen
	case errors.Is(err, os.ErrPermission):
		return "may not be read: that takes CAP_SYS_PTRACE"
	}
	return poll.WhyMissing(err)
}
