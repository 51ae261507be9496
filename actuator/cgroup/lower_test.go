package cgroup

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

// Whatever is allocated meanwhile, and wherever the kernel refuses: no limit is set
// below the floor that was just read, near the floor no step is more than an eighth,
// and in the end there stands what was asked for, or what was there.
func TestMemoryIsLoweredInStepsThatNeverGoBelowWhatIsInUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		page := page()
		now := trimtab.Units(page * float64(rapid.IntRange(2, 1<<20).Draw(t, "now")))
		goal := trimtab.Units(page * float64(rapid.IntRange(1, int(now.Value/page)-1).Draw(t, "goal")))
		if rapid.IntRange(0, 9).Draw(t, "unlimited") == 0 {
			now = trimtab.Unlimited()
		}
		stands, floor, steps := now, trimtab.Units(0), 0
		refuseAt := rapid.IntRange(0, 12).Draw(t, "refused at")
		err := lower(now, goal, func() (trimtab.Amount, error) {
			floor = trimtab.Units(page * float64(rapid.IntRange(1, int(1.2*goal.Value/page)+1).Draw(t, "floor")))
			return floor, nil
		}, func(v trimtab.Amount) error {
			if v == now {
				stands = v
				return nil
			}
			if v.Less(floor) || v.Less(goal) || !v.Less(stands) {
				t.Fatalf("set %v, from %v to %v with the floor at %v", v, stands, goal, floor)
			}
			if !stands.Unlimited && v.Less(trimtab.Units(min(2*floor.Value, stands.Value*(1-stepDown))-page)) {
				t.Fatalf("a step from %v to %v with the floor at %v", stands, v, floor)
			}
			if steps++; steps == refuseAt {
				return errors.New("busy")
			}
			if steps > 200 {
				t.Fatal("no end")
			}
			stands = v
			return nil
		})
		if err == nil && stands != goal || err != nil && stands != now {
			t.Fatalf("%v stands, from %v to %v: %v", stands, now, goal, err)
		}
		if err != nil && !goal.Less(floor) && steps != refuseAt {
			t.Fatalf("refused with the floor at %v and the goal %v: %v", floor, goal, err)
		}
	})
}
