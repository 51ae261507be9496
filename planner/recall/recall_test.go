package recall_test

import (
	"math"
	"testing"

	"github.com/trimtab/trimtab/planner/recall"
)

func TestBorrowersGiveBackInProportionAndNeverBelowTheirBaselines(t *testing.T) {
	of := []recall.Borrower{{Now: 3, Set: 3, Baseline: 2}, {Now: 4, Set: 4, Baseline: 2}, {Now: 1, Set: 1, Baseline: 2}}
	for over, want := range map[float64][]float64{1.5: {2.5, 3, 1}, 3: {2, 2, 1}, 9: {2, 2, 1}, 0: nil} {
		got := recall.Sets(of, over, 0.1)
		if len(got) != len(want) {
			t.Fatalf("over by %v: %v, want %v", over, got, want)
		}
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-9 {
				t.Errorf("over by %v: %v, want %v", over, got, want)
			}
		}
	}
}

func TestAFallThatIsPlannedAnywayCounts(t *testing.T) {
	if got := recall.Sets([]recall.Borrower{{Now: 4, Set: 3, Baseline: 2}}, 1, 0.1); got != nil {
		t.Errorf("it falls by 1 already: %v", got)
	}
}
