package drf

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	solver "github.com/trimtab/trimtab/planner/drf"
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

func TestAtBestThreadsTakeWhatIsOutsideOfLoopsAndTheLongestPartOfEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &turns{threads: 2}
		for range 2 {
			r.rest.begin()
			r.parts.begin()
			for _, loop := range [][]time.Duration{{1, 2}, {7, 4}} {
				time.Sleep(10 * time.Second)
				r.Run(2, func(part int) { time.Sleep(loop[part] * time.Second) })
			}
			time.Sleep(20 * time.Second)
			r.rest.step()
		}
		if got := r.rest.seconds(); math.Abs(got-40) > 1e-9 {
			t.Errorf("%v s outside of loops, want 40", got)
		}
		if got := r.atBest(); math.Abs(got-(40+2+7)) > 1e-9 {
			t.Errorf("%v s at best, want 49", got)
		}
	})
}

func TestPartsInTurnGiveTheBitsOfOneThread(t *testing.T) {
	tr := &trial{Options: Options{Pool: Pool{Tenants: 3000, Resources: 500, Mean: 2, SD: 16, Seed: 1}}}
	defer tr.mem.free()
	if err := tr.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := tr.matrix.Solve(solver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := levels(r, tr.Tenants, nil)
	for range 2 {
		both := &turns{threads: 2}
		if err := both.solve(tr.matrix); err != nil {
			t.Fatal(err)
		}
		if len(both.parts.least) == 0 {
			t.Fatal("no loop was cut into parts")
		}
		if got := levels(r, tr.Tenants, nil); !slices.Equal(got, want) {
			t.Fatal("other levels")
		}
	}
}
