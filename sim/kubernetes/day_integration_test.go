//go:build integration

package kubernetes

import (
	"testing"

	"github.com/trimtab/trimtab/sim"
)

func TestTrimtabTakesATenthFewerCoreHoursThanTheBestThresholdsThatMissAsFewMinutes(t *testing.T) {
	for _, name := range LoadNames() {
		x := &Experiment{Load: name, Run: []string{Trimtab, HPA, KEDA}, Seeds: 1, First: 1, Runner: sim.InOrder}
		got, err := x.Play()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range got[1:] {
			t.Logf("%s, %s: %v minutes, %.0f core-hours; trimtab %v, %.0f", name, s.Policy, s.Missed, s.CoreHours, got[0].Missed, got[0].CoreHours)
			if *s.Saved < 0.1 || got[0].Missed > 30 {
				t.Errorf("%s against %s: saved %.3f, %v of 14400 minutes missed", name, s.Policy, *s.Saved, got[0].Missed)
			}
		}
	}
}

func TestInAPoolThatIsTooSmallNoServiceStarves(t *testing.T) {
	x := &Experiment{Load: "nasa", Run: []string{Trimtab, HPA}, Thresholds: []float64{60}, Pool: 75, Seeds: 1, First: 1, Runner: sim.InOrder}
	got, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("least share in time of a service in an hour: trimtab %.3f, hpa %.3f", got[0].Served, got[1].Served)
	if got[0].Served < got[1].Served {
		t.Errorf("the worst hour of a service has %.3f in time under trimtab, %.3f under HPA", got[0].Served, got[1].Served)
	}
}
