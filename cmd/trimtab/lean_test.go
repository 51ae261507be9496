package main

import (
	"testing"
	"time"
)

func TestASmallHeapHasRoomAndALargeOneDoesNotDouble(t *testing.T) {
	for live, want := range map[uint64]int{0: 200, 1 << 20: 200, 10 << 20: 100, 20 << 20: 50, 40 << 20: 25, 200 << 20: 25, 1 << 30: 15} {
		if got := growth(live, roomBeside); got != want {
			t.Errorf("%d MiB live: may grow by %d%%, want %d%%", live>>20, got, want)
		}
	}
}

func TestACalmProcessRunsOneGoroutineAtATimeAndABusyOneAll(t *testing.T) {
	var p pace
	for i, turn := range []struct {
		share  float64 // of one CPU, since the turn before
		single bool
	}{{0, false}, {0.2, false}, {0.05, true}, {0.2, true}, {0.5, false}, {0.2, false}, {0.05, true}, {1.5, false}} {
		now := time.Unix(0, 0).Add(time.Duration(i) * leanEvery)
		used := p.used + time.Duration(turn.share*float64(leanEvery))
		if p.single = p.next(now, used); p.single != turn.single {
			t.Errorf("turn %d, %.0f%% of a CPU: one at a time %v, want %v", i, 100*turn.share, p.single, turn.single)
		}
		p.at, p.used = now, used
	}
}
