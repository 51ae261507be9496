//go:build integration

package fast

import "testing"

func TestTheLoopKeepsTheSLOOnStepsWithHalfTheCoresOfAnyThreshold(t *testing.T) {
	a, err := experiment(900, []string{K8sCPU, K8sCPUFast, Fast}, Steps).Play()
	if err != nil {
		t.Fatal(err)
	}
	_, steps := a.loads()
	k8s := func(c *Cell) bool { return !c.Burst && c.Policy != Fast }
	if got := a.against(steps, cores, k8s); len(got) != 1 || !(got[0] < 0.55) {
		t.Errorf("cores over those of the best threshold: %v", got)
	}
	for i := range a.Cells {
		if c := &a.Cells[i]; c.Policy == Fast {
			if c.Burst && (!c.Holds() || c.Back[len(c.Back)-1] > g4All) {
				t.Errorf("%s: %.2f%% late, back after %v s", c.Name(), 100*c.Late, c.Back)
			}
			if c.Over > 0 || c.Second > g6Second || c.Writes > 2.5 {
				t.Errorf("%s: %d ticks over, %v in a second, %v writes/s", c.Name(), c.Over, c.Second, c.Writes)
			}
		}
	}
}

func TestBandsHoldWhereTheLoopRestsAndNotAtWhatItGranted(t *testing.T) {
	x := experiment(leastLearning, []string{Fast})
	l := x.learn(3)
	if len(l) != 1 || l[0].Cells != len(fixedTimes())*loadParts {
		t.Fatalf("%+v", l)
	}
	if l[0].Setting < g8Band || l[0].Granted > 0.5 || !(l[0].Slope > 0) {
		t.Errorf("%+v", l[0])
	}
}
