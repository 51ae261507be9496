package gaps_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/gaps"
)

func TestAGroupHasOneRoundInAGapAndTheNextAtItsEnd(t *testing.T) {
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	g := gaps.Gaps{Least: 10 * time.Second}
	cause := trimtab.Cause{Kind: codes.CauseAlert, Ref: "a"}
	if !g.Ask(t0, "x", cause) || g.Ask(t0.Add(4*time.Second), "x", cause) || !g.Ask(t0.Add(4*time.Second), "y", cause) {
		t.Fatal("one per gap and group")
	}
	if _, ok := g.Due(t0.Add(9 * time.Second)); ok {
		t.Error("due before the end of the gap")
	}
	if got, ok := g.Due(t0.Add(10 * time.Second)); !ok || got.Ref != "a" {
		t.Errorf("at its end: %+v, %v", got, ok)
	}
	if g.Began(); g.Ask(t0.Add(12*time.Second), "x", cause) {
		t.Error("the round at the end begins a gap, too")
	}
	g.Began()
	if _, ok := g.Due(t0.Add(time.Hour)); ok {
		t.Error("a round that began leaves nothing to wait for")
	}
}

func TestAThousandGroupsDoNotStartAThousandAndOneRounds(t *testing.T) {
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	g, n := gaps.Gaps{Least: 10 * time.Second}, 0
	for i := range 2000 {
		if g.Ask(t0, fmt.Sprint(i), trimtab.Cause{}) {
			n++
		}
	}
	if n != 1024 {
		t.Errorf("%d rounds", n)
	}
}
