package rig

import (
	"testing"
	"time"
)

func TestBusyTimeIsAllButIdleAndWaiting(t *testing.T) {
	got, stolen, err := busyTime("cpu  100 1 50 10000 300 2 3 4 7 0\ncpu0 1 2\n")
	if err != nil || got != 160*10*time.Millisecond || stolen != 40*time.Millisecond {
		t.Errorf("%v, %v stolen, %v", got, stolen, err)
	}
	if _, _, err := busyTime("intr 5"); err == nil {
		t.Error("another line passed")
	}
}
