package envelope_test

import (
	"math"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/envelope"
)

func TestAnEnvelopeLiesAroundTheTargetWithinWhatMayBeHad(t *testing.T) {
	for name, c := range map[string]struct {
		rules    envelope.Rules
		instance envelope.Instance
		want     trimtab.Envelope
	}{
		"by default": {envelope.Rules{}, envelope.Instance{Target: 2, Most: 16, Stall: 0.05, SLO: 0.9},
			trimtab.Envelope{Floor: 0.6, Target: 2, Ceiling: 8, Budget: 0.05, Late: 0.05}},
		"bounds of the knob": {envelope.Rules{}, envelope.Instance{Target: 2, Least: 1, Most: 3, Stall: 0.09, SLO: 0.99},
			trimtab.Envelope{Floor: 1, Target: 2, Ceiling: 3, Budget: 0.07, Late: 0.006}},
		"bounds beyond the target": {envelope.Rules{}, envelope.Instance{Target: 2, Least: 5, Most: 1, Stall: 0.01, SLO: 1},
			trimtab.Envelope{Floor: 2, Target: 2, Ceiling: 2, Budget: 0.01, Late: 0.006}},
		"as declared": {envelope.Rules{Floor: 0.5, Ceiling: 2, Budget: 0.03, Burst: 1}, envelope.Instance{Target: 2, Most: 16, Stall: 0.05, SLO: 0.95},
			trimtab.Envelope{Floor: 1, Target: 2, Ceiling: 4, Budget: 0.03, Late: 0.03, Burst: 2}},
	} {
		got, want := c.rules.Of(c.instance), c.want
		for what, v := range map[string][2]float64{"floor": {got.Floor, want.Floor}, "target": {got.Target, want.Target}, "ceiling": {got.Ceiling, want.Ceiling},
			"budget": {float64(got.Budget), float64(want.Budget)}, "late": {got.Late, want.Late}, "burst": {got.Burst, want.Burst}} {
			if math.Abs(v[0]-v[1]) > 1e-9 || !got.Lend || !got.Borrow {
				t.Errorf("%s: %s %v, want %v", name, what, v[0], v[1])
			}
		}
	}
}

func TestWhatIsTakenCanBeBorrowedBack(t *testing.T) {
	e := envelope.Rules{}.Of(envelope.Instance{Target: 1, Most: 16, SLO: 0.9})
	envelope.Rules{}.Back(e, 3, 10)
	if e.Ceiling != 10 { // of 12, at most 10
		t.Errorf("ceiling %v", e.Ceiling)
	}
	e.Borrow = false
	if (envelope.Rules{}).Back(e, 4, 16); e.Ceiling != 10 {
		t.Errorf("ceiling %v of one that may not borrow", e.Ceiling)
	}
}

func TestEnvelopesThatDifferByLessThan4PercentAreAlike(t *testing.T) {
	a := envelope.Rules{}.Of(envelope.Instance{Target: 1, Most: 16, Stall: 0.05, SLO: 0.9})
	for target, want := range map[float64]bool{1: true, 1.03: true, 1.06: false} {
		b := envelope.Rules{}.Of(envelope.Instance{Target: target, Most: 16, Stall: 0.05, SLO: 0.9})
		if envelope.Alike(a, b) != want {
			t.Errorf("targets of 1 and %v: alike %v", target, !want)
		}
	}
	b := *a
	if b.Lend = false; envelope.Alike(a, &b) {
		t.Error("one that may not lend is alike one that may")
	}
}
