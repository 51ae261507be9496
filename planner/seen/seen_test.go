package seen_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/seen"
)

func TestAValueIsSeenAgainUntilAThousandOthersCame(t *testing.T) {
	var v seen.Values
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	first := &trimtab.Command{Pool: "p", Verb: trimtab.Round, Time: at}
	if v.Again(first) || !v.Again(first) {
		t.Error("the first time is no repetition, the second is one")
	}
	if v.Again(&trimtab.Command{Pool: "p", Verb: trimtab.Round, Time: at.Add(1)}) {
		t.Error("the same at another time is another")
	}
	for i := range 1024 {
		v.Again(&trimtab.Command{Pool: fmt.Sprint(i), Verb: trimtab.Round, Time: at})
	}
	if v.Again(first) {
		t.Error("it is remembered for ever")
	}
}
