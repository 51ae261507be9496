package trimtab_test

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

func TestAnEpochIsPlausibleUpToTheMillisecondsSince2026(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	top := uint64(now.Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).Milliseconds())
	for epoch, want := range map[uint64]bool{1: true, top: true, top + 1: false, 1 << 62: false, 1<<64 - 1: false} {
		if got := trimtab.PlausibleEpoch(epoch, now); got != want {
			t.Errorf("epoch %d: %v", epoch, got)
		}
	}
	if !trimtab.PlausibleEpoch(top+1, now.Add(time.Millisecond)) {
		t.Error("a millisecond later the next one is not")
	}
	// A clock that stands at 1970 or 9999 makes no ordinary epoch implausible.
	for _, at := range []time.Time{time.Unix(0, 0), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if !trimtab.PlausibleEpoch(1_000_000, at) {
			t.Errorf("at %v", at)
		}
	}
}
