package view

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

// gated is a view of a service of one core, whose curve meets its SLO of 90% from 2 cores on for 10
// requests/s.
func gated() *Model { return worked(trimtab.Units(1), noon, 0, nil) }

// refusing is an estimate in which some of 20 requests/s are refused.
func refusing(at time.Time, refused map[string]float64) *trimtab.Estimate {
	left := 20.0
	for _, n := range refused {
		left -= n
	}
	in, one, cost := left/20, 1., .05
	return &trimtab.Estimate{Workload: "shop", Time: at, Performance: &in, Allocation: &one, Cost: &cost, Load: &trimtab.LoadForecast{Now: 20, Mean: 20, Upper: 25},
		Refused: refused, Model: "test/1", Inputs: []trimtab.Input{{Name: "performance", Value: in, Source: "spans"}}}
}

// half refuses one half.
func half() map[string]float64 { return map[string]float64{"low": 8, "normal": 2} }

// needsOf returns what it would take to shed none at a time, or "".
func needsOf(v *Model, now time.Time) string {
	if x := v.Status(now).Workloads[0].Shed; x != nil {
		return x.ToShedNone()
	}
	return ""
}

func TestWhatItWouldTakeToShedNoneIsToldWithItsBandOrSaidToBeUnknown(t *testing.T) {
	v := gated()
	e := refusing(noon, half())
	v.Observe(e)
	if got := needsOf(v, noon); got != "not known: no curve was learnt yet; at least 1 core, the work that comes" {
		t.Errorf("without a curve: %q", got)
	}
	at := func(a, lower, mean, upper float64) trimtab.Knot {
		return trimtab.Knot{Allocation: a, Band: trimtab.Band{Lower: lower, Mean: mean, Upper: upper}}
	}
	for k, c := range []struct {
		curve *trimtab.Curve
		want  string
	}{
		{&trimtab.Curve{Load: 20, Level: .9, Knots: []trimtab.Knot{at(1, .2, .5, .6), at(2, .3, .6, .8)}}, "not known: its curve, which goes up to 2, does not reach the SLO under this load; at least 1 core, the work that comes"},
		{&trimtab.Curve{Load: 10, Level: .9, Knots: []trimtab.Knot{at(1, .9, .9, .9), at(2, .95, 1, 1)}}, "2 cores (2 to 2, 90% band of its curve); it has 1"},
		{&trimtab.Curve{Load: 20, Level: .9, Knots: []trimtab.Knot{at(1, .2, .5, .9), at(2, .3, .9, 1)}}, "2 cores (1 to more than its curve knows, 90% band of its curve); it has 1"},
		{&trimtab.Curve{Load: 20, Level: .9, Knots: []trimtab.Knot{at(.5, .2, .9, .95), at(2, .9, .95, 1)}}, "0.5 cores (0.5 to 2, 90% band of its curve), which it has: what is shed came in bursts, or while the service stood still, or the limit is too low"},
	} {
		now := noon.Add(time.Duration(k+1) * time.Second)
		e := refusing(now, half())
		e.Curve = c.curve
		v.Observe(e)
		if got := needsOf(v, now); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestSeveralInstancesAreToldHowManyOfTheirSizeWouldShedNone(t *testing.T) {
	v := gated()
	h := &trimtab.Holding{Pool: "p", Host: "h", Time: noon.Add(time.Second), LeaseLeft: 30}
	for _, name := range []string{"a", "b"} {
		h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "shop", Instance: name, Resource: "cpu"}, Knob: "test", Now: trimtab.Units(.5), Baseline: trimtab.Units(.5), Since: noon, Max: 8})
	}
	v.Observe(h)
	e := refusing(noon, half())
	e.Curve = &trimtab.Curve{Load: 20, Level: .9, Knots: []trimtab.Knot{{Allocation: 1, Band: trimtab.Band{Lower: .5, Mean: .5, Upper: .5}}, {Allocation: 2.2, Band: trimtab.Band{Lower: .9, Mean: .9, Upper: .9}}}}
	v.Observe(e)
	if got := needsOf(v, noon); !strings.Contains(got, "2.2 cores (2.2 to 2.2, 90% band of its curve), or 5 instances of the present size") {
		t.Errorf("%q", got)
	}
}

func TestSheddingGoesOnOverAShortPauseAndIsNotToldWhenNothingIsKnownOfNow(t *testing.T) {
	v, now := gated(), noon
	tell := func(after time.Duration, refused map[string]float64) *Shed {
		now = now.Add(after)
		v.Observe(refusing(now, refused))
		return v.Status(now).Workloads[0].Shed
	}
	tell(0, half())
	if x := tell(5*time.Second, nil); x != nil {
		t.Errorf("nothing is refused: %+v", x)
	}
	if x := tell(5*time.Second, half()); x == nil || !x.Since.Equal(noon) {
		t.Errorf("after 10 s: %+v, want since noon", x)
	}
	if x := tell(10*time.Minute, half()); x == nil || !x.Since.Equal(now) {
		t.Errorf("after 10 minutes: %+v, want since now", x)
	}
	if x := v.Status(now.Add(time.Hour)).Workloads[0].Shed; x != nil {
		t.Errorf("nothing was heard for an hour: %+v", x)
	}
	e := refusing(now.Add(time.Second), half())
	e.Inputs = append(e.Inputs, trimtab.Input{Name: "load", Missing: "no spans for 8s"})
	v.Observe(e)
	if x := v.Status(e.Time).Workloads[0].Shed; x != nil {
		t.Errorf("the load is missing: %+v", x)
	}
}

func TestOfAServiceThatIsNotConfiguredNoClassesAreKept(t *testing.T) {
	v := New(Config{Round: time.Second})
	e := refusing(noon, half())
	v.Observe(e)
	if x := v.Status(noon).Workloads[0].Shed; x == nil || len(x.Classes) != 1 || x.Classes[0] != (ShedClass{"all", 10}) {
		t.Errorf("%+v", x)
	}
}

func TestTheHistoryHasRefusedRequestsByClass(t *testing.T) {
	v := gated()
	for k, refused := range []map[string]float64{nil, {"low": 3}, half(), nil} {
		v.Observe(refusing(noon.Add(time.Duration(k)*time.Second), refused))
	}
	gone := refusing(noon.Add(4*time.Second), nil)
	gone.Load, gone.Performance = nil, nil
	v.Observe(gone)
	h, _ := v.History("shop", noon.Add(-time.Hour), noon.Add(5*time.Second))
	n := func(v float64) *float64 { return &v }
	if d := cmp.Diff(map[string][]*float64{"low": {n(0), n(3), n(8), n(0), nil}, "normal": {n(0), n(0), n(2), n(0), nil}}, h.Refused); d != "" {
		t.Error(d)
	}
	if h, _ := worked(trimtab.Units(1), noon, 3, func(int) (float64, float64) { return 1, 1 }).History("shop", noon.Add(-time.Hour), noon); h.Refused != nil {
		t.Errorf("no gate: %v", h.Refused)
	}
}

func TestAReportCountsWhatWasRefusedAndItIsNotInTime(t *testing.T) {
	v, now := gated(), noon
	for k := range 120 { // 5 minutes of 20 requests/s that fit, 5 in which one half is refused
		now = now.Add(5 * time.Second)
		refused := half()
		if k < 60 {
			refused = nil
		}
		v.Observe(refusing(now, refused))
	}
	r := v.Report(noon, now)
	q := r.Workloads[0].Requests
	if q == nil || math.Abs(q.Came-12000) > 1 || math.Abs(q.Refused["low"]-2400) > 1 || math.Abs(q.Refused["normal"]-600) > 1 || math.Abs(*q.OfAll-.75) > .001 || math.Abs(*q.OfAnswered-1) > .001 {
		t.Fatalf("%+v", q)
	}
	d := r.Document()
	if text := strings.Join(d.Lead, "\n"); !strings.Contains(text, "Gates refused 3000 requests: of all requests to their workloads 75% were in time, of the answered ones 100%.") {
		t.Errorf("%s", text)
	}
	if got := fmt.Sprint(d.Sections[1].Title, d.Sections[1].Rows); got != "Requests refused by gates[[shop 12000 3000 low 2400, normal 600 75% 100%]]" {
		t.Error(got)
	}
	if b := r.Workloads[0].Budget; b == nil || b.Left > -1 {
		t.Errorf("budget %+v: want what is refused to use it up", b)
	}
	later := v.Report(noon.Add(-time.Hour), now)
	if text := strings.Join(later.Missing, "\n"); !strings.Contains(text, "refused requests are known for less: shop 10 min") {
		t.Errorf("%s", text)
	}
	if r := worked(trimtab.Units(1), noon, 3, func(int) (float64, float64) { return 1, 1 }).Report(noon.Add(-time.Minute), noon); r.Total.Requests != nil || strings.Contains(fmt.Sprint(r.Document()), "efused") {
		t.Errorf("no gate: %+v", r.Total.Requests)
	}
}

// A query of the service's own metrics knows nothing of what did not come through the gate.
func TestOfAPerformanceThatIsNotOfSpansNothingIsSaidToBeInTimeOfAll(t *testing.T) {
	v := gated()
	for k := range 3 {
		e := refusing(noon.Add(time.Duration(k)*5*time.Second), half())
		e.Inputs[0].Source = "prometheus"
		v.Observe(e)
	}
	q := v.Report(noon.Add(-5*time.Second), noon.Add(10*time.Second)).Workloads[0].Requests
	if q == nil || q.OfAll != nil || q.OfAnswered != nil || q.Total() < 100 {
		t.Errorf("%+v", q)
	}
}

func TestHowManyAreRefusedIsKeptWhateverTheResolutionAndTheNumberOfClasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h series
		points := rapid.IntRange(1, 300).Draw(t, "points")
		want := 0.0
		for k := range points {
			refused := map[string]float64{}
			for range rapid.IntRange(0, 5).Draw(t, "classes") {
				refused[fmt.Sprint(rapid.IntRange(0, 3*maxClasses).Draw(t, "class"))] = float64(rapid.IntRange(0, 1000).Draw(t, "n"))
			}
			for _, n := range refused {
				want += n
			}
			p := point{at: int64(k + 1), many: 1, met: metUnknown, refused: h.refusals(refused)}
			p.v[colLoad] = 1
			h.add(p, allLevelPoints) // the least room
		}
		got := 0.0
		for _, p := range h.since(time.UnixMilli(0)) {
			if p.refused == nil {
				continue
			}
			for _, n := range p.refused {
				got += float64(n) * float64(p.many)
			}
		}
		if math.Abs(got-want) > 1e-4*want || len(h.classes) > maxClasses {
			t.Fatalf("%v of %v, %d classes", got, want, len(h.classes))
		}
	})
}
