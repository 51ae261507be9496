//go:build integration

package kubernetes

import (
	"testing"

	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/sim/kubernetes"
)

// One seed of the three whose mean is a fifth or more on each load.
func TestTrimtabTakesAboutAFifthFewerCoreHoursThanTheBestThresholdsThatMissAsFewMinutes(t *testing.T) {
	for _, name := range LoadNames() {
		x := &Experiment{Load: name, Run: []string{kubernetes.Trimtab, kubernetes.HPA, kubernetes.KEDA}, Frame: lab.Frame{Seeds: 1, First: 1}}
		got, err := x.Play()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range got[1:] {
			t.Logf("%s, %s: %v minutes, %.0f core-hours; trimtab %v, %.0f", name, s.Policy, s.Missed, s.CoreHours, got[0].Missed, got[0].CoreHours)
			if *s.Saved < 0.19 || got[0].Missed > 5 {
				t.Errorf("%s against %s: saved %.3f, %v of 14400 minutes missed", name, s.Policy, *s.Saved, got[0].Missed)
			}
		}
	}
}

func TestInAPoolThatIsTooSmallFewerMinutesAreMissedThanUnderHPA(t *testing.T) {
	x := &Experiment{Load: "nasa", Run: []string{kubernetes.Trimtab, kubernetes.HPA}, Thresholds: []float64{60}, Pool: 75, Frame: lab.Frame{Seeds: 1, First: 1}}
	got, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Missed > 0.7*got[1].Missed {
		t.Errorf("trimtab misses %v minutes, HPA %v", got[0].Missed, got[1].Missed)
	}
	// Nobody starves: in its worst hour each service has what it needs, or its equal share
	// of the pool; the largest needs 17.5 cores then.
	for i := range got[0].Services {
		if s := &got[0].Services[i]; s.Needed < 0.4 {
			t.Errorf("%s had %.2f of its need in an hour", s.Service, s.Needed)
		}
	}
	if got[0].Needed < got[1].Needed {
		t.Errorf("trimtab leaves %s %.2f of its need, HPA %s %.2f", got[0].Worst, got[0].Needed, got[1].Worst, got[1].Needed)
	}
}
