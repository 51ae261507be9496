package main

import (
	"testing"
)

func TestASmallHeapHasRoomAndALargeOneDoesNotDouble(t *testing.T) {
	for live, want := range map[uint64]int{0: 200, 1 << 20: 200, 10 << 20: 100, 20 << 20: 50, 40 << 20: 25, 200 << 20: 25, 1 << 30: 15} {
		if got := growth(live, roomBeside); got != want {
			t.Errorf("%d MiB live: may grow by %d%%, want %d%%", live>>20, got, want)
		}
	}
}
