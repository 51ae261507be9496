package analyzer_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/quantile"
)

// shop is an application of three members; what each needs is in needs.
type shop struct {
	t     *testing.T
	a     *analyzer.Analyzer
	now   time.Time
	has   map[string]float64
	spans bool
	// odd makes more for db slower: a percent of it takes so many more.
	odd  float64
	last []trimtab.Value
}

// needs are what members have to have: a visit takes T = 10 ms / (1 − need/has),
// and there are need/10ms of them a second.
func needs() map[string]float64 { return map[string]float64{"db": 3, "front": 1, "search": 0.2} }

const shopLoad = 100.0

func rate(name string) float64 { return needs()[name] / 0.01 }

// latency is the sum over the visits of a request.
func (s *shop) latency() float64 {
	total := 0.0
	for _, name := range []string{"db", "front", "search"} {
		total += rate(name) / shopLoad * s.sojourn(name)
	}
	return total * math.Pow(s.has["db"]/5, s.odd)
}

func newShop(t *testing.T, spans bool) *shop {
	c := analyzer.Config{Report: time.Second, Round: time.Second, Settle: -1, Entry: "front"}
	for name := range needs() {
		c.Workloads = append(c.Workloads, analyzer.Workload{Name: name, Target: 1, Resource: "cpu", Min: 0.5, Max: 16,
			SLO: analyzer.SLO{Latency: 100 * time.Millisecond, Fraction: 0.9}})
	}
	a, err := analyzer.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &shop{t: t, a: a, now: time.Unix(1_000_000_000, 0).UTC(), has: map[string]float64{"db": 5, "front": 5, "search": 5}, spans: spans}
}

// sojourn is how long a visit takes, in seconds.
func (s *shop) sojourn(name string) float64 {
	return 0.01 / (1 - math.Min(0.98, needs()[name]/s.has[name]))
}

func (s *shop) step(v trimtab.Value) {
	if err := v.Validate(); err != nil {
		s.t.Fatal(err)
	}
	s.a.Step(s.now, v)
}

// interval lets one pass in which everybody has what it has.
func (s *shop) interval() {
	from := s.now
	s.hold()
	s.now = s.now.Add(time.Second)
	for name := range needs() {
		if s.spans && name != "front" {
			s.step(s.sketch(from, name, 0.5))
		}
	}
	s.step(s.sketch(from, "front", s.latency()))
	s.last = s.a.Step(s.now, nil)
}

func (s *shop) hold() {
	h := &trimtab.Holding{Host: "h", Time: s.now}
	for name, v := range s.has {
		h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: h.Pool, Host: h.Host, Workload: name, Resource: "cpu"}, Knob: name, Now: trimtab.Units(v), Since: s.now})
	}
	s.step(h)
}

// sketch has requests of one latency, and what they spent in the workload.
func (s *shop) sketch(from time.Time, name string, latency float64) *trimtab.Sketch {
	n := rate(name)
	c := &trimtab.Component{Spans: n}
	c.Sojourn.Add(s.sojourn(name), n)
	out := &trimtab.Sketch{Workload: name, From: from, To: s.now, Requests: n, Spans: uint64(n)}
	if s.spans {
		out.Components = map[string]*trimtab.Component{name: c}
	}
	out.Latency.Add(latency, n)
	return out
}

func (s *shop) estimate(name string) *trimtab.Estimate {
	s.t.Helper()
	for _, v := range s.last {
		if e := v.(*trimtab.Estimate); e.Workload == name {
			if err := e.Validate(); err != nil {
				s.t.Fatal(err)
			}
			return e
		}
	}
	s.t.Fatalf("no estimate of %s among %d", name, len(s.last))
	return nil
}

// try gives everybody something else for some intervals.
func (s *shop) try(intervals int) {
	for i := range intervals {
		s.has = map[string]float64{"db": 4 + float64(i%3)*2, "front": 3 + float64(i/3%3)*2, "search": 3 + float64(i/9%3)*2}
		s.interval()
	}
	s.has = map[string]float64{"db": 5, "front": 5, "search": 5}
	s.interval()
}

func TestAllMembersGetTheSignalOfTheEntryOverTheirOwnAllocation(t *testing.T) {
	s := newShop(t, false)
	s.try(27)
	if n := len(estimates(t, s.last)); n != 3 {
		t.Fatalf("%d estimates of 3 members", n)
	}
	latency := s.latency()
	gain := map[string]float64{}
	for name := range needs() {
		e := s.estimate(name)
		if e.Performance == nil || math.Abs(*e.Performance-0.1/latency) > 0.02**e.Performance || e.Hold != nil || e.Load == nil || e.Load.Now != shopLoad {
			t.Errorf("%s: performance %v of a latency of %v, load %+v, hold %q", name, *e.Performance, latency, e.Load, e.Hold)
		}
		if e.Allocation == nil || *e.Allocation != 5 || e.Reports != 28 || !strings.HasPrefix(e.Model, "kernel/") {
			t.Errorf("%s: %v, %d reports, %s", name, e.Allocation, e.Reports, e.Model)
		}
		here, more := e.Curve.Eval(5), e.Curve.Eval(8)
		if d := math.Abs(here.Mean - 0.1/latency); d > 0.1*here.Mean {
			t.Errorf("%s: %+v expected where %v was seen", name, here, 0.1/latency)
		}
		gain[name] = more.Mean / here.Mean
	}
	if gain["db"] < 1.1 || gain["db"] < gain["front"]+0.05 || gain["db"] < gain["search"]+0.05 {
		t.Errorf("8 in the place of 5 gains %v: db needs most", gain)
	}
}

func TestSpansTellAfterOneReportWhoIsShort(t *testing.T) {
	with, without := newShop(t, true), newShop(t, false)
	with.interval()
	without.interval()
	ratio := func(s *shop, name string) float64 {
		c := s.estimate(name).Curve
		return c.Eval(8).Mean / c.Eval(5).Mean
	}
	if a, b := ratio(with, "db"), ratio(with, "search"); a < 1.1 || a < b+0.1 {
		t.Errorf("by spans 8 gain %.2f for db and %.2f for search", a, b)
	}
	if a, b := ratio(without, "db"), ratio(without, "search"); math.Abs(a-b) > 1e-9 {
		t.Errorf("without spans nothing tells them apart: %v and %v", a, b)
	}
	if m := with.estimate("db").Model; !strings.Contains(m, "sojourn") {
		t.Errorf("model %s", m)
	}
}

// What live traffic tells of the components weighs what is left to learn of each member:
// search, of which spans tell that it takes no time, is tried once the tail grows in it.
func TestWhatAMemberAddsToTheTailIsWhatIsLeftToLearnOfIt(t *testing.T) {
	open := func(told bool) float64 {
		s := newShop(t, true)
		for i := range 60 {
			more := float64(i / 10 % 2) // twice the load, for 10 s at a time
			from := s.now
			s.hold()
			s.now = s.now.Add(time.Second)
			for _, name := range []string{"db", "front", "search"} {
				v := s.sketch(from, name, 0.05*(1+more))
				if name == "front" {
					v.Requests *= 1 + more
					v.Latency = quantile.Histogram{}
					v.Latency.Add(0.05*(1+more), v.Requests)
				}
				if name == "front" && told {
					v.Servpods = []trimtab.ServpodSketch{servpod("db", v.Requests, 0.02, 0.05*(1+more)), servpod("search", v.Requests, 0.01*(1+5*more), 0.05*(1+more))}
				}
				s.step(v)
			}
			if out := estimates(t, s.a.Step(s.now, nil)); len(out) > 0 {
				s.last = nil
				for _, e := range out {
					s.last = append(s.last, e)
				}
			}
		}
		b := s.estimate("search").Curve.Eval(10)
		return b.Upper / b.Mean
	}
	if with, without := open(true), open(false); with < 1.02*without {
		t.Errorf("the band of search is open by %.4f where the tail grows in it, and by %.4f where nothing is told", with, without)
	}
}

// servpod is that of n requests alike, with a time in it and a latency.
func servpod(component string, n, time, latency float64) trimtab.ServpodSketch {
	return trimtab.ServpodSketch{Component: component, N: n, Sum: n * time, Square: n * time * time, Latency: n * latency, LatencySquare: n * latency * latency, Cross: n * time * latency}
}

func TestTheCurveOfAMemberDoesNotFallEvenIfMoreOfItWasSlower(t *testing.T) {
	s := newShop(t, false)
	s.odd = 2
	s.try(27)
	for name := range needs() {
		knots := s.estimate(name).Curve.Knots
		for i := 1; i < len(knots); i++ {
			if a, b := &knots[i-1], &knots[i]; b.Mean < a.Mean {
				t.Errorf("%s: %v at %v, %v at %v", name, a.Mean, a.Allocation, b.Mean, b.Allocation)
			}
		}
	}
}

func TestAMissingSignalHoldsAllMembers(t *testing.T) {
	s := newShop(t, true)
	s.try(5)
	for range 6 {
		s.now = s.now.Add(time.Second)
		s.hold()
		s.step(s.sketch(s.now.Add(-time.Second), "db", 0.5))
		if out := s.a.Step(s.now, nil); len(out) > 0 {
			s.last = out
		}
	}
	for name := range needs() {
		if e := s.estimate(name); !strings.HasPrefix(e.Hold.Text, "front: no ") {
			t.Errorf("%s: hold %q", name, e.Hold)
		}
	}
}

func TestAMemberWhoseAllocationIsUnknownTeachesNothingAndHolds(t *testing.T) {
	s := newShop(t, false)
	delete(s.has, "db")
	s.has = map[string]float64{"front": 5, "search": 5}
	from := s.now
	s.hold()
	s.now = s.now.Add(time.Second)
	s.step(s.sketch(from, "front", 0.05))
	s.last = s.a.Step(s.now, nil)
	if e := s.estimate("db"); e.Reports != 0 || e.Curve != nil || e.Hold == nil {
		t.Errorf("%d reports, curve %v, hold %q", e.Reports, e.Curve, e.Hold)
	}
	if e := s.estimate("front"); e.Reports != 0 || e.Hold != nil {
		t.Errorf("%d reports, hold %q", e.Reports, e.Hold)
	}
}

func TestReportsDuringWhichAnAllocationChangedAreSetAsideForAWhile(t *testing.T) {
	s := newShop(t, false)
	s.interval()
	n := s.estimate("front").Reports
	for i := range 7 {
		// A knob is turned in the middle of every interval.
		from := s.now
		s.now = s.now.Add(500 * time.Millisecond)
		s.has["db"] = 5 + float64((i+1)%2)*5
		s.hold()
		s.now = s.now.Add(500 * time.Millisecond)
		s.step(s.sketch(from, "front", 0.05))
		s.last = s.a.Step(s.now, nil)
		e := s.estimate("front")
		aside := strings.Contains(fmt.Sprint(e.Inputs), "not learnt from: transient")
		if early := i < 4; aside != early || early && e.Reports != n {
			t.Errorf("change %d: set aside %v, %d reports of %d", i, aside, e.Reports, n)
		}
	}
}

func TestWhatAnApplicationLearntOutlivesTheProcess(t *testing.T) {
	a, b := newShop(t, true), newShop(t, true)
	a.try(20)
	saved := a.a.Snapshot()
	for name, state := range saved {
		if err := b.a.Restore(name, state); err != nil {
			t.Fatal(err)
		}
	}
	b.now = a.now
	a.interval()
	b.interval()
	x, _ := json.Marshal(a.estimate("db").Curve)
	y, _ := json.Marshal(b.estimate("db").Curve)
	if !bytes.Equal(x, y) {
		t.Errorf("restored:\n%s\nwant\n%s", y, x)
	}
	spoilt := bytes.Replace(saved["front"], []byte("application"), []byte("applicatiom"), 1)
	if err := newShop(t, true).a.Restore("front", spoilt); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("a damaged snapshot: %v", err)
	}
}

func TestAnEntryThatCannotBeIsRefused(t *testing.T) {
	good := analyzer.Workload{Name: "front", Resource: "cpu", Max: 4, SLO: analyzer.SLO{Latency: time.Second, Fraction: 0.9}}
	for name, c := range map[string]analyzer.Config{
		"unknown":      {Entry: "x", Workloads: []analyzer.Workload{good}},
		"no SLO":       {Entry: "front", Workloads: []analyzer.Workload{{Name: "front", Resource: "cpu", Max: 4}}},
		"no target":    {Entry: "front", Workloads: []analyzer.Workload{{Name: "front", Resource: "cpu", Max: 4, PerformanceFrom: analyzer.FromPrometheus}}},
		"nothing held": {Entry: "front", Workloads: []analyzer.Workload{{Name: "front", SLO: good.SLO}}},
	} {
		if _, err := analyzer.New(c); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
