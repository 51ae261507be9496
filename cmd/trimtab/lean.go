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
)

const (
	// roomBeside is how much the heap may grow before it is collected, in bytes,
	// where services run beside trimtab, roomAgent in an agent, and roomApart where
	// no services run beside; leanPercent is how much at least, in percent of what is
	// live; mostPercent bounds it where next to nothing is live. 100 groups have 40 MiB live after
	// some minutes and make 2.5 MiB a second of garbage: lab/bench/small. A
	// console of 1,000 hosts makes 30: a third of its time went into collections.
	// An agent of 100 groups has 6 MiB live, and 40 MiB of its binary count as
	// resident where the kernel maps much at a time.
	roomBeside, roomAgent, roomApart = 10 << 20, 4 << 20, 64 << 20
	leanPercent, mostPercent         = 25, 200
	// largePercent is in place of leanPercent where more than large is live. The
	// analyzer of 10,000 workloads has 620 MiB live, of which each workload's learner
	// is 62 KiB: lab/bench/fleet. It and the planner are promised 1 GiB together.
	large, largePercent = 256 << 20, 15
	// leanEvery is how often that is set anew. Pages of the program are dropped at once,
	// after the first leanEvery, and after every dropEvery of them: in a minute 2 MiB
	// are mapped again that seldom work needs.
	leanEvery = 10 * time.Second
	dropEvery = 6
	// calm is the share of one CPU below which goroutines run one at a time, and busy the one
	// from which on they run on all CPUs again.
	calm, busy = 0.1, 0.3
)

// growth returns by how many percent of what is live the heap may grow.
func growth(live, room uint64) int {
	least := uint64(leanPercent)
	if live > large {
		least = largePercent
	}
	return int(min(mostPercent, max(least, 100*room/max(live, 1))))
}

// stayLean lets the heap grow by room before it is collected, or by a quarter of
// what is live where that is more, until ctx ends. A small process is collected seldom, and a large one
// does not double. GOGC in the environment goes before it. It also gives back what
// is no longer used of the program's own file, and runs goroutines one at a time while the
// process is calm, unless GOMAXPROCS is in the environment.
func stayLean(ctx context.Context, room uint64) {
	now, fixed := leanPercent, os.Getenv("GOGC") != ""
	if !fixed {
		debug.SetGCPercent(now)
	}
	// Where /proc does not say what is mapped the pages stay, which costs memory only.
	_, failed := dropPages()
	go func() {
		t := time.NewTicker(leanEvery)
		defer t.Stop()
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		var threads pace
		for tick := 0; ; tick++ {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			if os.Getenv("GOMAXPROCS") == "" {
				threads.turn(time.Now())
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

// pace runs the goroutines of a calm process one at a time: a message from one to another
// would wake a second thread, which sleeps again at once. With 100 groups that is a third of
// all switches between threads and 5% of the CPU time: lab/bench/small.
type pace struct {
	single bool
	at     time.Time
	used   time.Duration // CPU time, up to at
}

// turn measures the CPU time since the last turn and acts on it.
func (p *pace) turn(now time.Time) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return
	}
	used := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	single := p.next(now, used)
	switch {
	case single && !p.single:
		runtime.GOMAXPROCS(1)
	case p.single && !single:
		runtime.SetDefaultGOMAXPROCS()
	}
	p.single, p.at, p.used = single, now, used
}

// next tells whether goroutines are to run one at a time. The first turn has nothing to
// compare with, and changes nothing.
func (p *pace) next(now time.Time, used time.Duration) bool {
	share := float64(used-p.used) / float64(now.Sub(p.at))
	switch {
	case p.at.IsZero():
		return p.single
	case share < calm:
		return true
	case share >= busy:
		return false
	}
	return p.single
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
