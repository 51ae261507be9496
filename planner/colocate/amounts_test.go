package colocate_test

import (
	"testing"

	"github.com/trimtab/trimtab/planner/colocate"
)

func TestAStepIsATenthOfASmallHostAndNoMoreThanACoreOfALargeOne(t *testing.T) {
	for capacity, want := range map[float64]float64{0.5: 0.05, 2: 0.2, 10: 1, 64: 1} {
		of := colocate.Amounts{"cpu": capacity}
		if step, start := colocate.DefaultStep(of)["cpu"], colocate.DefaultStart(of)["cpu"]; step != want || start != want {
			t.Errorf("of %v cores: step %v, start %v, want %v", capacity, step, start, want)
		}
	}
}
