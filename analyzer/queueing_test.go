package analyzer

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/forecast"
	"github.com/trimtab/trimtab/analyzer/forecast/auto"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
	"github.com/trimtab/trimtab/analyzer/learn/queue"
	"github.com/trimtab/trimtab/analyzer/report"
	"github.com/trimtab/trimtab/quantity"
)

var q0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// queueAnalyzer is an analyzer of one workload that is seen as a queue.
func queueAnalyzer(t *testing.T, from string) *Analyzer {
	t.Helper()
	return forecasting(t, from, nil)
}

// forecasting is a queueAnalyzer whose load is forecast by f.
func forecasting(t *testing.T, from string, f func() forecast.Forecaster) *Analyzer {
	t.Helper()
	a, err := New(Config{Forecaster: f, Report: time.Second, Round: 5 * time.Second, Workloads: []Workload{{
		Name: "w", SLO: SLO{Latency: 200 * time.Millisecond, Fraction: 0.95}, Target: 0.95, Resource: "cpu", Min: 0.01, Max: 4,
		LoadFrom: from, PerformanceFrom: from, Queue: true,
		Learner: func() learn.Learner { l, _ := gp.New(0.9); return l }}}})
	if err != nil {
		t.Fatal(err)
	}
	a.Step(q0, &trimtab.Holding{Host: "h", Time: q0, Epoch: 1, Targets: []trimtab.KnobState{{KnobID: trimtab.KnobID{Host: "h", Workload: "w", Resource: "cpu"}, Knob: "test", Now: trimtab.Units(0.5), Since: q0.Add(-time.Minute), Min: 0.01, Max: 4}}})
	return a
}

// uses tells what the group used in the second that ends at t, and in how many periods it was
// stopped, below 0: that is not known.
func uses(a *Analyzer, t time.Time, cores, throttled float64) {
	for q, v := range map[quantity.Quantity]float64{quantity.Usage: cores, quantity.Throttled: throttled} {
		if v < 0 {
			continue
		}
		a.Step(t, &trimtab.Sample{Workload: "w", Quantity: q, Source: "cgroup", Time: t, Window: 1, Value: v})
	}
}

// answers is a sketch of n requests that ended in the second that begins at
// from, each after the given latency in seconds.
func answers(from time.Time, n int, latency float64) *trimtab.Sketch {
	s := &trimtab.Sketch{Workload: "w", From: from, To: from.Add(time.Second), Requests: float64(n), Spans: uint64(n), Threshold: 0.2}
	k := min(int(math.Ceil(latency)), trimtab.MaxBegun-1)
	if latency < 0.5 {
		k = 0
	}
	s.Begun = make([]float64, k+1)
	s.Begun[k] = float64(n)
	for range n {
		s.Latency.Add(latency, 1)
	}
	if latency <= 0.2 {
		s.Under = float64(n)
	}
	return s
}

// last is the newest estimate among values, or the one before.
func last(e *trimtab.Estimate, values []trimtab.Value) *trimtab.Estimate {
	for _, v := range values {
		if x, ok := v.(*trimtab.Estimate); ok {
			e = x
		}
	}
	return e
}

// second plays one second: what was used and what was answered.
func second(a *Analyzer, k int, cores, throttled float64, s *trimtab.Sketch) *trimtab.Estimate {
	now := q0.Add(time.Duration(k+1) * time.Second)
	uses(a, now, cores, throttled)
	if s != nil {
		a.Step(now, s)
	}
	return last(nil, a.Step(now.Add(600*time.Millisecond), nil))
}

func at(k int) time.Time { return q0.Add(time.Duration(k) * time.Second) }

func TestTheCostOfARequestIsKnownAfterSeconds(t *testing.T) {
	a := queueAnalyzer(t, FromSpans)
	var e *trimtab.Estimate
	for k := range 6 {
		if x := second(a, k, 0.06, 0, answers(at(k), 5, 0.02)); x != nil {
			e = x
		}
	}
	if e == nil || e.Cost == nil || math.Abs(*e.Cost-0.012) > 1e-9 {
		t.Fatalf("estimate %+v: want a cost of 0.012 core-seconds", e)
	}
	if e.Curve == nil || e.Curve.Eval(0.05).Mean > 0.05 || e.Curve.Eval(0.5).Mean < 0.9 {
		t.Errorf("curve %+v: 0.05 cores are less than the work that arrives, 0.5 are plenty", e.Curve)
	}
}

func TestWithoutUseThereIsNoCost(t *testing.T) {
	a := queueAnalyzer(t, FromSpans)
	var e *trimtab.Estimate
	for k := range 6 {
		now := at(k + 1)
		a.Step(now, answers(at(k), 5, 0.02))
		e = last(e, a.Step(now.Add(600*time.Millisecond), nil))
	}
	if e == nil || e.Cost != nil {
		t.Errorf("estimate %+v", e)
	}
}

func TestAGapInTheSpansDoesNotMakeRequestsDear(t *testing.T) {
	a := queueAnalyzer(t, FromSpans)
	var e *trimtab.Estimate
	for k := range 40 {
		var s *trimtab.Sketch
		if k < 10 || k >= 30 {
			s = answers(at(k), 5, 0.02)
		}
		if x := second(a, k, 0.06, 0, s); x != nil {
			e = x
		}
	}
	if e == nil || e.Cost == nil || math.Abs(*e.Cost-0.012) > 0.0015 {
		t.Errorf("cost %v after 20 s without spans: want 0.012", *e.Cost)
	}
}

// queued is the sketch of the second that begins k seconds after q0, of a service
// that answers 10 requests a second in turn while 20 arrive, from second 8 on.
func queued(k int) *trimtab.Sketch {
	s := &trimtab.Sketch{Workload: "w", From: at(k), To: at(k + 1), Threshold: 0.2}
	for i := range 1000 {
		began, ended := 8+float64(i)/20, 8+float64(i+1)/10
		if int(ended-1e-9) != k {
			continue
		}
		back := k - int(began)
		for len(s.Begun) <= back {
			s.Begun = append(s.Begun, 0)
		}
		s.Begun[back]++
		s.Requests++
		s.Spans++
		s.Latency.Add(ended-began, 1)
		if ended-began <= 0.2 {
			s.Under++
		}
	}
	return s
}

func TestWhileAQueueGrowsTheLoadIsWhatArrivesAndNotWhatIsAnswered(t *testing.T) {
	a := queueAnalyzer(t, FromSpans)
	for k := range 8 {
		second(a, k, 0.12, 0, answers(at(k), 10, 0.02))
	}
	var e *trimtab.Estimate
	for k := 8; k < 12; k++ {
		if x := second(a, k, 0.5, 1, queued(k)); x != nil {
			e = x
		}
	}
	if e == nil || e.Load == nil || e.Load.Now < 15 {
		t.Fatalf("estimate %+v: want a load of nearly 20", e)
	}
	// 80 came and 40 were answered.
	if e.Backlog == nil || !(*e.Backlog > 20**e.Cost && *e.Backlog < 60**e.Cost) {
		t.Errorf("backlog %v at a cost of %v: 40 requests wait", *e.Backlog, *e.Cost)
	}
}

// A service gets 20 requests a second in order. It can do 10 of them a second from
// second 8 to 14, and 40 else, so that a queue grows and is worked off.
func TestWhatWaitsIsToldByTheMedianWaitWhileAQueueGrowsAndByWhatWaitedLeastWhileItIsWorkedOff(t *testing.T) {
	q := queueing{model: queue.New(0.2), latency: 0.2}
	for i, ended, k := 0, 0.0, 0; k < 17; k++ {
		s, waits := report.Spans{Begun: make([]float64, trimtab.MaxBegun)}, []float64(nil)
		for ; ; i++ {
			began, each := float64(i)/20, 1./40
			if free := math.Max(began, ended); free >= 8 && free < 14 {
				each = 1. / 10
			}
			if math.Max(began, ended)+each >= float64(k+1) {
				break
			}
			ended = math.Max(began, ended) + each
			s.Begun[k-int(began)]++
			s.Latency.Add(ended-began, 1)
			waits = append(waits, ended-began)
		}
		load, _ := q.arrive(int64(k), &s, float64(len(waits)), time.Second)
		first, last := waits[0], waits[len(waits)-1]
		told, want := q.waiting/load, (first+last)/2
		switch {
		case k < 10: // no queue yet that would tell
			continue
		case k >= 14:
			want = last + (first-last)/5
		}
		if math.Abs(told-want) > 0.15*math.Abs(first-last)+0.02*want {
			t.Errorf("second %d: a wait of %.2f s is told, want %.2f: the first one answered waited %.2f s and the last one %.2f s", k, told, want, first, last)
		}
	}
}

func TestByPromQLTheUseOfTheLastSecondsTellsTheLoadBetweenReports(t *testing.T) {
	a := queueAnalyzer(t, FromPrometheus)
	var e *trimtab.Estimate
	for k := range 60 {
		now := at(k + 1)
		cores := 0.06
		if k >= 55 {
			cores = 0.18 // three times the load; the rate over 20 s lags
		}
		uses(a, now, cores, 0)
		if k%5 == 4 {
			for q, v := range map[quantity.Quantity]float64{quantity.Load: 5, quantity.Performance: 1} {
				a.Step(now, &trimtab.Sample{Workload: "w", Quantity: q, Source: "prometheus", Time: now, Window: 20, Value: v})
			}
		}
		e = last(e, a.Step(now.Add(600*time.Millisecond), nil))
	}
	if e == nil || e.Load == nil || e.Load.Now < 9 {
		t.Errorf("load %+v: want what the use tells, nearly 10 over the last 10 s", e.Load)
	}
}

// stops plays seconds of a workload by PromQL whose quota stops it for the last
// ones, and returns the last estimate.
func stops(t *testing.T, seconds, stopped int) *trimtab.Estimate {
	t.Helper()
	a := queueAnalyzer(t, FromPrometheus)
	var e *trimtab.Estimate
	for k := range seconds {
		now := at(k + 1)
		cores, throttled := 0.06, 0.0
		if k >= seconds-stopped {
			cores, throttled = 0.5, 1
		}
		uses(a, now, cores, throttled)
		if k%5 == 4 && k < seconds-stopped {
			for q, v := range map[quantity.Quantity]float64{quantity.Load: 5, quantity.Performance: 1} {
				a.Step(now, &trimtab.Sample{Workload: "w", Quantity: q, Source: "prometheus", Time: now, Window: 20, Value: v})
			}
		}
		e = last(e, a.Step(now.Add(600*time.Millisecond), nil))
	}
	return e
}

func TestByPromQLAnEstimateSaysForHowLongTheLimitHasStoppedTheWorkload(t *testing.T) {
	if e := stops(t, 60, 4); e == nil || e.Stopped != 4 || e.Backlog != nil {
		t.Errorf("%+v: want 4 s, and no backlog, of which nobody knows", e)
	}
	if e := stops(t, 60, 0); e == nil || e.Stopped != 0 {
		t.Errorf("%+v: want none", e)
	}
}

func TestWhileItIsStoppedTheLoadIsNoLessThanItsUseTells(t *testing.T) {
	// .5 cores of use at .012 core-seconds a request.
	if e := stops(t, 60, 4); e == nil || e.Load == nil || e.Load.Now < 40 {
		t.Errorf("load %+v: want .5/.012", e.Load)
	}
}

func TestACurveCoversTheMaximumAlsoAtTheMeanOfAWideForecast(t *testing.T) {
	w := newWorkload(&Config{}, nil, Workload{Max: 4})
	for _, l := range []trimtab.LoadForecast{{Now: 10, Mean: 10, Upper: 60}, {Now: 5, Mean: 20, Upper: 20}, {Upper: 60}} {
		if most := w.upTo(&l); !(most*l.Mean >= 4*l.Upper*(1-1e-9) || l.Mean == 0 && most > 0 && !math.IsInf(most, 0)) {
			t.Errorf("%+v: up to %v", l, most)
		}
	}
}

func TestACurveIsReadAsFinelyInAReportWithoutRequestsAsInAnyOther(t *testing.T) {
	w := newWorkload(&Config{}, nil, Workload{Max: 4})
	busy, idle := w.upTo(&trimtab.LoadForecast{Now: 20, Mean: 20, Upper: 40}), w.upTo(&trimtab.LoadForecast{Mean: 20, Upper: 40})
	if busy != idle {
		t.Errorf("up to %v, and %v while no request comes: the knots would lie further apart", busy, idle)
	}
}

func TestWhileSpansAreOnTheirWayTheUseTellsTheLoad(t *testing.T) {
	a := queueAnalyzer(t, FromSpans)
	for k := range 20 {
		second(a, k, 0.12, 0, answers(at(k), 10, 0.02))
	}
	// Second 20 is told by both, and the use of second 21 is here before its spans.
	if e := second(a, 21, 0.24, 0, answers(at(20), 10, 0.02)); e == nil || e.Load == nil || !(e.Load.Now > 11) {
		t.Errorf("estimate %+v: want a load above 11: 20 a second came of late", e)
	}
}

func TestAfterARestartItIsKnownAtOnceWhatARequestCosts(t *testing.T) {
	a := queueAnalyzer(t, FromSpans)
	for k := range 30 {
		second(a, k, 0.2, 0, answers(at(k), 20, 0.05))
	}
	b := queueAnalyzer(t, FromSpans)
	for name, state := range a.Snapshot() {
		if err := b.Restore(name, state); err != nil {
			t.Fatal(err)
		}
	}
	want, got := second(a, 30, 0.2, 0, answers(at(30), 20, 0.05)), second(b, 30, 0.2, 0, answers(at(30), 20, 0.05))
	if want.Cost == nil || got.Cost == nil || math.Abs(*want.Cost-0.01) > 1e-4 || math.Abs(*got.Cost-*want.Cost) > 1e-4 {
		t.Fatalf("a request costs %v, before the restart %v; want 0.01 core-seconds", got.Cost, want.Cost)
	}
	if fresh := second(queueAnalyzer(t, FromSpans), 30, 0.2, 0, answers(at(30), 20, 0.05)); fresh.Cost != nil {
		t.Fatalf("without the state it costs %v already", *fresh.Cost)
	}
	for _, a := range []float64{0.1, 0.2, 0.25, 0.3} {
		if x, y := want.Curve.Eval(a).Mean, got.Curve.Eval(a).Mean; math.Abs(x-y) > 0.01 {
			t.Errorf("at %v cores %v are expected to be in time, before the restart %v", a, y, x)
		}
	}
}

func TestAStateOfAQueueThatIsNoneIsRefused(t *testing.T) {
	good := queue.New(0.2).State()
	for name, s := range map[string]savedQueue{
		"no likelihoods": {}, "too few": {Model: queue.State{Logs: good.Logs[1:]}},
		"above the greatest": {Model: queue.State{Logs: append([]float64{1}, good.Logs[1:]...)}},
		"work below 0":       {Model: good, Work: -1}, "endless requests": {Model: good, Requests: math.Inf(1)},
	} {
		q := newQueueing(&Workload{Queue: true, Learner: func() learn.Learner { l, _ := gp.New(0.9); return l }})
		if err := q.load(&s); !errors.Is(err, trimtab.ErrInvalid) || q.work != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestARisingLoadIsToldAsMeasuredAndExpectedWhereItWillBe(t *testing.T) {
	for rise, ahead := range map[int][2]float64{1: {1.02, 1.4}, 0: {0.95, 1.01}} {
		a := forecasting(t, FromSpans, func() forecast.Forecaster {
			f, err := auto.New("smoothing", auto.Config{Horizon: 5, Level: 0.9, Step: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			return f
		})
		var e *trimtab.Estimate
		n := 20
		for k := range 40 {
			if k >= 20 {
				n += rise
			}
			e = second(a, k, 0.01*float64(n), 0, answers(at(k), n, 0.05))
		}
		// A load is the mean of some seconds, and so a little behind a rise.
		if l := e.Load; l.Now < 0.9*float64(n) || l.Now > float64(n) {
			t.Errorf("rising by %d a second: %v is told where %d came", rise, l.Now, n)
		}
		if r := e.Load.Mean / e.Load.Now; r < ahead[0] || r > ahead[1] {
			t.Errorf("rising by %d a second: %v is expected after %v", rise, e.Load.Mean, e.Load.Now)
		}
	}
}

func TestTheSlopeOfSpansSaysNothingOfALoadFromElsewhere(t *testing.T) {
	for from, goesOn := range map[string]bool{FromSpans: true, FromPrometheus: false} {
		w := newWorkload(&Config{Report: time.Second}, nil, Workload{Name: "w", Queue: true})
		w.queueing.model = queue.New(0.2)
		for k := range 15 {
			w.queueing.lately.see(float64(6+k), 1, 1)
		}
		now := 20.0
		w.last.Now, w.last.LoadFrom = &now, from
		l := trimtab.LoadForecast{Now: now, Mean: now, Upper: now}
		w.queueing.follow(&l, &w.last, w.config)
		if rises := l.Mean > now; rises != goesOn {
			t.Errorf("load from %s: %v is expected after %v", from, l.Mean, now)
		}
	}
}
