package sim

import (
	"errors"
	"testing"

	"github.com/trimtab/trimtab"
)

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

func TestInOrderRunsEachOnce(t *testing.T) {
	var got []int
	InOrder(3, func(i int) { got = append(got, i) })
	if len(got) != 3 || got[0] != 0 || got[2] != 2 {
		t.Error(got)
	}
}
