package main

import (
	"runtime"
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

func TestAProcessThatUsesLittleRunsOnOneCoreUntilItUsesMuch(t *testing.T) {
	defer runtime.SetDefaultGOMAXPROCS()
	all := runtime.GOMAXPROCS(0)
	if all == 1 {
		t.Skip("this machine has one core")
	}
	var cores onCores
	var used time.Duration
	look := func(last time.Duration) int {
		used += last
		cores.look(used)
		return runtime.GOMAXPROCS(0)
	}
	for i, x := range []struct {
		last time.Duration
		want int
	}{
		{time.Second, all}, {0, all}, {calmUse, all}, {calmUse + 1, all}, // not calm for long enough
		{0, all}, {0, all}, {0, all}, {0, all}, {0, 1}, {busyUse, 1}, {busyUse + 1, all}, {0, all},
	} {
		if got := look(x.last); got != x.want {
			t.Errorf("after %v in second %d: %d cores, want %d", x.last, i, got, x.want)
		}
	}
}
