package lab

import (
	"errors"
	"slices"
	"testing"

	"github.com/trimtab/trimtab/sim"
)

func TestEachRowIsPlayedOnceForEachSeed(t *testing.T) {
	done := 0
	f := Frame{Seeds: 3, Done: func() { done++ }}
	var played [2][3]int
	finished, err := f.Play(2, func(row, k int) error { played[row][k]++; return nil })
	if err != nil || done != 6 || !slices.Equal(finished, []bool{true, true}) || played != [2][3]int{{1, 1, 1}, {1, 1, 1}} {
		t.Errorf("%v, %d done, %v, %v", played, done, finished, err)
	}
}

func TestAStoppedExperimentTellsWhichRowsWereFinished(t *testing.T) {
	stopped := false
	f := Frame{Seeds: 2, Stop: func() bool { return stopped }}
	f.Runner = func(n int, work func(int)) { sim.InOrder(n-1, work) } // the last run never begins
	finished, err := f.Play(3, func(row, k int) error {
		if stopped = row == 1; stopped {
			return sim.ErrStopped
		}
		stopped = true
		return nil
	})
	if !errors.Is(err, sim.ErrStopped) || !slices.Equal(finished, []bool{true, false, false}) {
		t.Errorf("%v, %v", finished, err)
	}
}

func TestTheFirstRunThatFailedIsTheErrorOfTheExperiment(t *testing.T) {
	first := errors.New("first")
	f := Frame{Seeds: 2}
	f.Runner = func(n int, work func(int)) {
		for i := n; i > 0; i-- {
			work(i - 1)
		}
	}
	finished, err := f.Play(2, func(row, k int) error {
		if row == 1 {
			return map[int]error{0: first, 1: errors.New("second")}[k]
		}
		return nil
	})
	if !errors.Is(err, first) || !slices.Equal(finished, []bool{true, false}) {
		t.Errorf("%v, %v", finished, err)
	}
}
