package replicas

import (
	"math"
	"testing"
)

func TestEachInstanceKeepsItsSlackWhereTheLoadFallsFasterThanTheirNumber(t *testing.T) {
	w, s := shop(8, 1, 2.2), &State{Slack: Slack{Each: 0.2}}
	w.Work = 2 // of which the curve says that a tenth more is enough
	d := w.Decide(noon(), s, endless())
	if d.Replicas != 8 || math.Abs(d.Size-0.45) > 1e-9 {
		t.Errorf("%+v, want 8 of (2 + 8 · 0.2) / 8", d)
	}
	w.Work = 0
	if d := w.Decide(noon(), s, endless()); math.Abs(d.Size-0.28) > 1e-9 {
		t.Errorf("%+v, want 8 of 0.28: its work is not known", d)
	}
}

func TestInstancesAreEnoughOnlyWithTheirSlack(t *testing.T) {
	w, s := shop(2, 2, 3.9), &State{Slack: Slack{Each: 0.5}}
	w.Work = 3.5
	if d := w.Decide(noon(), s, endless()); d.Replicas != 3 {
		t.Errorf("%+v, want 3: two of 2 have 3 for their work", d)
	}
}

func TestSlackIsLearntAsWhatIsNeededBeyondTheWork(t *testing.T) {
	s := &Slack{}
	for range 10_000 {
		s.Observe(5, 4, 4)
	}
	if math.Abs(s.Each-0.25) > 1e-9 {
		t.Errorf("%v, want a quarter of 1", s.Each)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), -1} {
		s.Observe(bad, 4, 4)
		s.Observe(5, bad, 4)
	}
	s.Observe(5, 4, 0)
	if math.Abs(s.Each-0.25) > 1e-9 {
		t.Errorf("%v after what makes no sense", s.Each)
	}
}

func TestTheMarginIsTheSameAmountAtAnyLoad(t *testing.T) {
	m := &Margin{Share: 0.1, Usual: 10}
	for _, need := range []float64{1, 10, 40} {
		if got := m.Add(Need{need, need}); math.Abs(got.Round-need-1) > 0.01 {
			t.Errorf("%v for %v, want 1 more", got, need)
		}
	}
}
