package analyzer

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

// looped feeds seconds of reports: a rest of the quota, whether the loop was to leave it
// there, and the share of requests in time. It returns the last estimate.
type looped struct {
	a  *Analyzer
	at time.Time
}

func (l *looped) play(seconds int, rest float64, fixed bool, inTime int) (last *trimtab.Estimate) {
	for range seconds {
		e := trimtab.Envelope{Floor: rest / 2, Target: rest, Ceiling: 2 * rest, Lend: !fixed, Borrow: !fixed}
		l.a.Step(l.at.Add(time.Millisecond), &trimtab.Holding{Host: "h", Time: l.at.Add(time.Millisecond), Targets: []trimtab.KnobState{{
			KnobID: trimtab.KnobID{Host: "h", Workload: "shop", Resource: "cpu"}, Now: trimtab.Units(rest), Max: 8, Fast: &trimtab.Fast{Envelope: e, Set: rest}}}})
		end := l.at.Add(time.Second)
		s := &trimtab.Sketch{Workload: "shop", From: l.at, To: end, Requests: 1000, Spans: 1000, Under: float64(inTime), Threshold: 0.1}
		for range 1000 {
			s.Latency.Add(0.05, 1)
		}
		l.a.Step(end.Add(10*time.Millisecond), s)
		for _, v := range l.a.Step(end.Add(900*time.Millisecond), nil) {
			if got, ok := v.(*trimtab.Estimate); ok {
				last = got
			}
		}
		l.at = end
	}
	return last
}

func begun(t *testing.T) *looped {
	t.Helper()
	return &looped{versioned(t), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func TestALookAtAFixedQuotaLeavesTheCurveWithLoansAlone(t *testing.T) {
	l := begun(t)
	l.play(30, 2, false, 990)
	w := l.a.workloads[0]
	before, reports := w.curves.learner.Predict(2, 1000), w.curves.learner.Reports()
	l.play(10, 2, true, 500)
	if after := w.curves.learner.Predict(2, 1000); after != before || w.curves.learner.Reports() != reports {
		t.Errorf("the curve with loans went from %v to %v", before, after)
	}
	e := l.play(5, 2, false, 990)
	if b := e.Fixed; b == nil || b.Upper > 0.8 || b.Lower > 0.5 {
		t.Errorf("with a fixed quota performance would be %v, and was 0.5", b)
	}
	if e.Curve == nil || e.Curve.Eval(2).Mean < 0.95 {
		t.Errorf("with loans it is .99, not %v", e.Curve.Eval(2))
	}
}

func TestATrialTeachesBothCurves(t *testing.T) {
	l := begun(t)
	l.play(30, 2, false, 990)
	reports := l.a.workloads[0].curves.learner.Reports()
	l.play(10, 1.5, true, 900)
	w := l.a.workloads[0]
	if w.curves.learner.Reports() <= reports || w.curves.fixed.learner == nil || w.curves.fixed.learner.Reports() == 0 {
		t.Errorf("the curve with loans has %d reports, and had %d", w.curves.learner.Reports(), reports)
	}
}

func TestAReportOfWhichAPartHadAFixedQuotaIsSetAside(t *testing.T) {
	f := fixed{}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		second int
		lend   bool
	}{{0, true}, {10, false}, {20, true}} {
		f.observe(&Workload{Name: "shop", Resource: "cpu"}, &trimtab.Holding{Host: "h", Time: at.Add(time.Duration(c.second) * time.Second), Targets: []trimtab.KnobState{{
			KnobID: trimtab.KnobID{Workload: "shop", Resource: "cpu"}, Fast: &trimtab.Fast{Envelope: trimtab.Envelope{Lend: c.lend}}}}})
	}
	for _, c := range []struct {
		from, to int
		want     float64
	}{{0, 10, 0}, {10, 20, 1}, {5, 15, 0.5}, {0, 30, 1. / 3}, {20, 30, 0}, {-5, 0, 0}} {
		if got := f.share(at.Add(time.Duration(c.from)*time.Second), at.Add(time.Duration(c.to)*time.Second)); got != c.want {
			t.Errorf("from %d to %d: %v, want %v", c.from, c.to, got, c.want)
		}
	}
}

func TestTheCurveOfAFixedQuotaOutlivesARestart(t *testing.T) {
	l := begun(t)
	l.play(10, 2, false, 990)
	l.play(10, 2, true, 500)
	want := l.a.workloads[0].curves.fixed.learner.Predict(2, 1000)
	again := versioned(t)
	if err := again.Restore("shop", l.a.Snapshot()["shop"]); err != nil {
		t.Fatal(err)
	}
	if got := again.workloads[0].curves.fixed.learner.Predict(2, 1000); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}
