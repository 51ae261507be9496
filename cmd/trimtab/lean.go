package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/trimtab/trimtab/internal/hostfs"
)

const (
	// roomBeside, roomAgent and roomApart are how much the heap may grow before a collection, in
	// bytes: with services on the host, in an agent, and with no services on the host.
	// leanPercent is the least growth in percent of the live heap, mostPercent the largest. With
	// 100 groups 25 to 32 MiB are live, and 3.3 MiB a second become garbage: lab/bench/small. With
	// a room of 16 MiB that process takes a tenth less CPU time, and more than 64 MiB after some
	// minutes. A console of 1,000 hosts makes 30 MiB a second, a third of whose time went into
	// collections. An agent of 100 groups has 6 MiB live.
	roomBeside, roomAgent, roomApart = 10 << 20, 10 << 20, 64 << 20
	leanPercent, mostPercent         = 25, 200
	// largePercent replaces leanPercent where more than large bytes are live. The analyzer of
	// 10,000 workloads has 620 MiB live, 62 KiB of it for each workload's learner:
	// lab/bench/fleet. It and the planner together are to stay under 1 GiB.
	large, largePercent = 256 << 20, 15
	// leanEvery is how often the growth is set anew. The program's own pages are dropped at the
	// start, after the first leanEvery, and then after every dropEvery of them: in a minute rare
	// work maps 2 MiB of them again.
	leanEvery = 10 * time.Second
	dropEvery = 6
)

// growth returns by how many percent of the live heap the heap may grow.
func growth(live, room uint64) int {
	least := uint64(leanPercent)
	if live > large {
		least = largePercent
	}
	return int(min(mostPercent, max(least, 100*room/max(live, 1))))
}

// stayLean lets the heap grow by room bytes before a collection, or by a quarter of the live heap
// where that is more, until ctx ends: a small process collects seldom, and a large one does not
// double. GOGC in the environment replaces it. It also keeps few pages of the program's own file
// resident.
func stayLean(ctx context.Context, room uint64) {
	now, fixed := leanPercent, os.Getenv("GOGC") != ""
	if !fixed {
		debug.SetGCPercent(now)
	}
	// If /proc does not show the mappings, the pages stay, which only costs memory.
	failed := shrinkPages()
	go func() {
		t := time.NewTicker(leanEvery)
		defer t.Stop()
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		for tick := 0; ; tick++ {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			if failed == nil && tick%dropEvery == 0 {
				failed = dropPages()
			}
			metrics.Read(live)
			if p := growth(live[0].Value.Uint64(), room); !fixed && (p < now*9/10 || p > now*11/10) {
				now = p
				debug.SetGCPercent(p)
			}
		}
	}()
}

// waitRoom is how many bytes more than at its start a process that mostly waits may use: reading
// the journal of 1,000 knobs takes 30 MiB. A process that uses more ends, and is restarted.
const waitRoom = 128 << 20

// waitLean shrinks a process that will mostly wait, and limits its memory: it releases the memory
// used for parsing the command line at once.
func waitLean() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(leanPercent)
	}
	debug.FreeOSMemory()
	_ = shrinkPages()                // see stayLean
	_ = hostfs.LimitMemory(waitRoom) // without the limit the process works, too
}
