package sim

import (
	"errors"
	"slices"
	"testing"

	"github.com/trimtab/trimtab"
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
	f.Runner = func(n int, work func(int)) { InOrder(n-1, work) } // the last run never begins
	finished, err := f.Play(3, func(row, k int) error {
		if stopped = row == 1; stopped {
			return ErrStopped
		}
		stopped = true
		return nil
	})
	if !errors.Is(err, ErrStopped) || !slices.Equal(finished, []bool{true, false, false}) {
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

func TestAnUnknownNameIsInvalidAndNamesTheKnownOnes(t *testing.T) {
	err := Known("load", []string{"b", "c"}, []string{"a", "b"})
	var unknown *UnknownError
	if !errors.As(err, &unknown) || !errors.Is(err, trimtab.ErrInvalid) || unknown.Name != "c" || err.Error() != `load "c": unknown` || len(unknown.Known) != 2 {
		t.Errorf("error %v", err)
	}
	if err := Known("load", []string{"a"}, []string{"a"}); err != nil {
		t.Error(err)
	}
}
