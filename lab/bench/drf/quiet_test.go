package drf

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheQuietTimeIsTheSumOfTheLeastTimeOfEachStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q quiet
		for _, repeat := range [][]time.Duration{{3, 50, 10}, {90, 4, 12}, {5, 4, 90}} {
			q.begin()
			for _, took := range repeat {
				time.Sleep(took * time.Second)
				q.step()
			}
		}
		if got := q.seconds(); math.Abs(got-(3+4+10)) > 1e-9 {
			t.Errorf("%v s, want 17", got)
		}
	})
}
