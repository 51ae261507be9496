package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
	"time"

	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/pause"
)

const (
	// roomBeside is how much the heap may grow before it is collected, in bytes,
	// where services run beside trimtab, roomAgent in an agent, and roomApart where
	// no services run beside; leanPercent is how much at least, in percent of what is
	// live; mostPercent bounds it where next to nothing is live. 100 groups have 40 MiB live after
	// some minutes and make 2.5 MiB a second of garbage: internal/bench/small. A
	// console of 1,000 hosts makes 30: a third of its time went into collections.
	// An agent of 100 groups has 6 MiB live, and 40 MiB of its binary count as
	// resident where the kernel maps much at a time.
	roomBeside, roomAgent, roomApart = 10 << 20, 4 << 20, 64 << 20
	leanPercent, mostPercent         = 25, 200
	// largePercent is in place of leanPercent where more than large is live. The
	// analyzer of 10,000 workloads has 620 MiB live, of which each workload's learner
	// is 62 KiB: internal/bench/fleet. It and the planner are promised 1 GiB together.
	large, largePercent = 256 << 20, 15
	// leanEvery is how often that is set anew. Pages of the program are dropped at once,
	// after the first leanEvery, and after every dropEvery of them: in two minutes 1 MiB
	// is mapped again that seldom work needs.
	leanEvery = 10 * time.Second
	dropEvery = 30
)

// growth returns by how many percent of what is live the heap may grow.
func growth(live, room uint64) int {
	least := uint64(leanPercent)
	if live > large {
		least = largePercent
	}
	return int(min(mostPercent, max(least, 100*room/max(live, 1))))
}

// onCores is on how many cores at once a process runs Go code. A process that uses little CPU
// runs on one: elsewhere each goroutine that is woken wakes a thread on another core, which is
// 7% of what a process of 100 groups uses (internal/bench/small, six runs side by side: -14 to
// +7%) and a third of its context switches. Threads that wait for the kernel do not count.
type onCores struct {
	one  bool
	used time.Duration // of CPU time so far
	calm int           // seconds in a row of little use
}

const (
	// calmUse in each of calmFor seconds is little use, busyUse in one is much.
	calmUse, busyUse = 200 * time.Millisecond, 400 * time.Millisecond
	calmFor          = 5
)

// look takes in what was used so far, once a second.
func (s *onCores) look(used time.Duration) {
	last := used - s.used
	s.used = used
	if s.calm++; last > calmUse {
		s.calm = 0
	}
	switch {
	case s.one && last > busyUse:
		runtime.SetDefaultGOMAXPROCS()
		s.one = false
	case !s.one && s.calm >= calmFor:
		runtime.GOMAXPROCS(1)
		s.one = true
	}
}

// used is the CPU time of this process so far.
func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it refuses no process its own
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// stayLean lets the heap grow by room before it is collected, or by a quarter of
// what is live where that is more, until ctx ends. A small process is collected seldom, and a large one
// does not double. It also gives back what is no longer used of the program's own file, and,
// where services run beside, uses one core while that is enough. GOGC and GOMAXPROCS in the
// environment go before it.
func stayLean(ctx context.Context, room uint64) {
	now, fixed := leanPercent, os.Getenv("GOGC") != ""
	if !fixed {
		debug.SetGCPercent(now)
	}
	// Where /proc does not say what is mapped the pages stay, which costs memory only.
	_, failed := dropPages()
	shares := room != roomApart && os.Getenv("GOMAXPROCS") == ""
	go func() {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		cores := onCores{used: used()}
		seconds := pause.Ticks(ctx, time.Second)
		for tick := 0; ; tick++ {
			for range leanEvery / time.Second {
				select {
				case <-ctx.Done():
					return
				case <-seconds:
				}
				if shares {
					cores.look(used())
				}
			}
			if failed == nil && tick%dropEvery == 0 {
				_, failed = dropPages()
			}
			metrics.Read(live)
			if p := growth(live[0].Value.Uint64(), room); !fixed && (p < now*9/10 || p > now*11/10) {
				now = p
				debug.SetGCPercent(p)
			}
		}
	}()
}

// waitRoom is how much more memory than at its start a process may take that waits
// nearly all the time, in bytes: the journal of 1,000 knobs takes 30 MiB to read. One that
// takes more ends, and is started again.
const waitRoom = 128 << 20

// waitLean makes a process small that will wait nearly all the time, and bounds what it
// may take: what reading the command line took goes back at once.
func waitLean() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(leanPercent)
	}
	debug.FreeOSMemory()
	_, _ = dropPages()               // see stayLean
	_ = hostfs.LimitMemory(waitRoom) // without a bound it is of use, too
}
