package main

import "testing"

func TestASmallHeapHasRoomAndALargeOneDoesNotDouble(t *testing.T) {
	for live, want := range map[uint64]int{0: 200, 1 << 20: 200, 16 << 20: 100, 32 << 20: 50, 48 << 20: 35, 1 << 30: 35} {
		if got := growth(live); got != want {
			t.Errorf("%d MiB live: may grow by %d%%, want %d%%", live>>20, got, want)
		}
	}
}
