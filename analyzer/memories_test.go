package analyzer

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/workingset"
	"github.com/trimtab/trimtab/quantity"
)

const mib = 1 << 20

// remembers is a workload's memory, to which a test tells samples.
type remembers struct {
	t *testing.T
	*memories
	now time.Time
}

func (r *remembers) tell(instance string, q quantity.Quantity, v float64) {
	r.t.Helper()
	if !r.observe(&trimtab.Sample{Workload: "w", Host: "h", Instance: instance, Quantity: q, Source: "memory", Time: r.now, Value: v}) {
		r.t.Errorf("no space for %s", instance)
	}
}

// run tells a use under a limit for some time, and returns what the only instance needs.
func (r *remembers) run(instance string, d, step time.Duration, limit float64, use func(since time.Duration) float64) quantity.MemoryNeed {
	r.t.Helper()
	for since := time.Duration(0); since < d; since += step {
		r.now = r.now.Add(step)
		r.tell(instance, quantity.WorkingSet, use(since))
		r.tell(instance, quantity.MemoryLimit, limit)
	}
	for _, n := range r.needs(r.now) {
		if n.Instance == instance {
			return n
		}
	}
	r.t.Fatalf("nothing is known of %q", instance)
	return quantity.MemoryNeed{}
}

func still(v float64) func(time.Duration) float64 { return func(time.Duration) float64 { return v } }

func TestAnEstimateTellsWhatAnInstanceUsesAndNeeds(t *testing.T) {
	a := queueAnalyzer(t, FromSpans)
	var e *trimtab.Estimate
	for k := range 5 {
		for q, v := range map[quantity.Quantity]float64{quantity.WorkingSet: 300 * mib, quantity.MemoryLimit: 1024 * mib} {
			a.Step(at(k), &trimtab.Sample{Workload: "w", Quantity: q, Source: "memory", Time: at(k), Value: v})
		}
		e = later(e, second(a, k, 0.12, 0, answers(at(k), 10, 0.02)))
	}
	if e == nil || len(e.Memory) != 1 {
		t.Fatalf("%+v", e)
	}
	n := e.Memory[0]
	if n.Use != 300*mib || *n.Limit != 1024*mib || n.Need < 300*mib || n.Need > 360*mib || n.Unlearnt == "" || n.Kills != 0 || n.Short != nil {
		t.Errorf("%+v", n)
	}
	state, ok := a.State("w")
	b := queueAnalyzer(t, FromSpans)
	if err := b.Restore("w", state); err != nil || !ok {
		t.Fatal(err, ok)
	}
	before, err := json.Marshal(a.find("w").memories.save())
	after, again := json.Marshal(b.find("w").memories.save())
	if err != nil || again != nil || string(before) != string(after) || len(before) < 100 {
		t.Errorf("after a restart %s, %v, %v; before %s", after, err, again, before)
	}
}

func TestAKillRaisesTheNeedOfThisInstanceAndOfTheNext(t *testing.T) {
	r := remembers{t, &memories{}, at(0)}
	r.run("a", 2*time.Hour, 5*time.Second, 500*mib, still(480*mib))
	r.tell("a", quantity.OOMKills, 2)
	if !r.news {
		t.Error("a kill waits for the next report")
	}
	for _, instance := range []string{"a", "b"} {
		if n := r.run(instance, 10*time.Second, time.Second, 500*mib, still(100*mib)); n.Need < 600*mib {
			t.Errorf("%s: %+v", instance, n)
		}
	}
	n := r.run("a", time.Second, time.Second, 500*mib, still(100*mib))
	if n.Kills != 2 || n.Killed == nil {
		t.Errorf("%+v", n)
	}
	r.tell("a", quantity.OOMKills, 0)
	if r.news {
		t.Error("no kill is no news")
	}
}

// A group whose limit is full of page cache meets it all the time.
func TestALimitThatIsMetCountsOnlyWhereTheWorkingSetIsNearIt(t *testing.T) {
	for name, c := range map[string]struct {
		use   float64
		q     quantity.Quantity
		v     float64
		short bool
	}{
		"cache only":                     {300 * mib, quantity.MemoryMaxEvents, 50, false},
		"it is full":                     {950 * mib, quantity.MemoryMaxEvents, 1, true},
		"it was throttled":               {950 * mib, quantity.MemoryHighEvents, 1, true},
		"it waits for memory":            {950 * mib, quantity.PressureMemorySome, 0.2, true},
		"it waits for a moment":          {950 * mib, quantity.PressureMemorySome, 0.01, false},
		"it waits for memory elsewhere":  {300 * mib, quantity.PressureMemorySome, 0.9, false},
		"nothing happened":               {950 * mib, quantity.MemoryMaxEvents, 0, false},
		"active cache, never read again": {950 * mib, quantity.MemoryMaxEvents, 50, false},
	} {
		r := remembers{t, &memories{}, at(0)}
		r.run("", time.Minute, time.Second, 1000*mib, still(c.use))
		if strings.HasPrefix(name, "active cache") {
			r.tell("", quantity.MemoryAnonymous, 100*mib)
			r.tell("", quantity.Refaults, 0)
		}
		r.tell("", c.q, c.v)
		if short := r.needs(r.now)[0].Short != nil; short != c.short {
			t.Errorf("%s: short is %v", name, short)
		}
	}
}

func TestPageCacheThatIsReadAgainIsNeededForADay(t *testing.T) {
	r := &remembers{t, &memories{}, at(0)}
	r.run("", 2*time.Hour, time.Minute, 600*mib, still(200*mib))
	// play tells a second at a time, with a part of the rate at which all of 400 MiB is read again within five minutes.
	play := func(limit, usage, rate float64, seconds int) float64 {
		for range seconds {
			r.run("", time.Second, time.Second, limit, still(200*mib))
			r.tell("", quantity.MemoryUsage, usage)
			r.tell("", quantity.Refaults, rate*400*mib/page/300)
		}
		return r.needs(r.now)[0].Need
	}
	for name, need := range map[string]float64{
		"it is not full": play(400*mib, 300*mib, 10, 120), "few pages": play(400*mib, 399*mib, 0.8, 300),
		"a moment": play(400*mib, 399*mib, 20, 2), "nothing more": play(400*mib, 399*mib, 0, 120),
	} {
		if need > 250*mib {
			t.Errorf("%s: it needs %v", name, need/mib)
		}
	}
	if need := play(400*mib, 399*mib, 1.2, 120); math.Abs(need-420*mib) > mib {
		t.Errorf("it needs %v", need/mib)
	}
	if need := play(449*mib, 449*mib, 1.9, 50); need > 421*mib { // 127 MiB, of which 49 fill what was added
		t.Errorf("of what fills a larger limit: it needs %v", need/mib)
	}
	for _, limit := range []float64{590 * mib, 600 * mib} {
		if need := play(limit, limit, 5, 120); need*(1+workingset.Margin) > 601*mib {
			t.Errorf("it needs %v, more than was ever given", need/mib)
		}
	}
	if n := r.run("", 25*time.Hour, time.Minute, 600*mib, still(200*mib)); n.Need > 250*mib {
		t.Errorf("a day later it needs %v", n.Need/mib)
	}
}

func TestPageCacheThatAProbeDidNotMissIsNoNeedUntilPagesAreReadAgain(t *testing.T) {
	r := &remembers{t, &memories{}, at(0)}
	tell := func(use float64) quantity.MemoryNeed {
		n := r.run("", 10*time.Minute, time.Minute, 600*mib, still(use))
		r.tell("", quantity.MemoryAnonymous, 100*mib)
		r.tell("", quantity.MemoryUsage, use)
		return n
	}
	for range 150 {
		tell(400 * mib)
	}
	tell(150 * mib)
	r.observe(&trimtab.Sample{Workload: "w", Host: "h", Quantity: quantity.MemoryNeeded, Source: "probe", Time: r.now, Value: 150 * mib, Window: 1200})
	tell(400 * mib)
	if n := tell(400 * mib); n.Need > 151*mib || n.Use > 150*mib {
		t.Errorf("it needs %v, uses %v", n.Need/mib, n.Use/mib)
	}
	r.tell("", quantity.OOMKills, 1)
	if n := tell(400 * mib); n.Use != 400*mib {
		t.Errorf("after a kill it uses %v", n.Use/mib)
	}
}

// Version 1 tells nothing before it kills.
func TestARiseThatReachesTheLimitIsAShortageBeforeIt(t *testing.T) {
	for name, c := range map[string]struct {
		rate  float64 // MiB per second
		short bool
	}{"it stands still": {0, false}, "it rises slowly": {0.3, false}, "it rises fast": {22, true}} {
		r := remembers{t, &memories{}, at(0)}
		n := r.run("", 30*time.Second, time.Second, 1000*mib, func(since time.Duration) float64 { return (300 + c.rate*since.Seconds()) * mib })
		if short := n.Short != nil; short != c.short || c.short && n.Use > 950*mib {
			t.Errorf("%s: %+v", name, n)
		}
	}
}

func TestAWorkingSetThatIsNotToldIsUnknown(t *testing.T) {
	r := remembers{t, &memories{}, at(0)}
	r.run("", time.Minute, time.Second, 1000*mib, still(100*mib))
	for _, v := range []float64{math.NaN(), -1} {
		r.now = r.now.Add(time.Second)
		r.tell("", quantity.WorkingSet, v)
	}
	if n := r.needs(r.now.Add(memoryStale + time.Second)); len(n) != 0 {
		t.Errorf("%+v", n)
	}
	r.observe(&trimtab.Sample{Workload: "w", Host: "h", Quantity: quantity.MemoryLimit, Time: r.now, Missing: "unlimited"})
	if n := r.needs(r.now); len(n) != 1 || n[0].Limit != nil {
		t.Errorf("%+v", n)
	}
}

func TestManyInstancesStayWithinTheirRoom(t *testing.T) {
	r := remembers{t, &memories{}, at(0)}
	for i := range 2 * quantity.MaxMemoryNeeds {
		r.observe(&trimtab.Sample{Workload: "w", Instance: strings.Repeat("x", i), Quantity: quantity.WorkingSet, Time: r.now, Value: 1})
	}
	if n := len(r.needs(r.now)); n != quantity.MaxMemoryNeeds {
		t.Errorf("%d instances", n)
	}
}

func TestALimitIsExplainedByPeakHourStartAndWhatIsForgotten(t *testing.T) {
	r := remembers{t, &memories{}, at(0)}
	r.run("a", 26*time.Hour, 30*time.Second, 1000*mib, func(since time.Duration) float64 {
		if since.Hours() > 20 && since.Hours() < 20.5 {
			return 500 * mib
		}
		return 400 * mib
	})
	n := r.needs(r.now)[0]
	for _, want := range []string{"highest use of the last 8 days was 500MiB, in the hour from " + at(0).Add(20*time.Hour).Format("2006-01-02 15:04") + " UTC", "older use is forgotten", "margin of 7%"} {
		if !strings.Contains(n.Why, want) {
			t.Errorf("%q lacks %q", n.Why, want)
		}
	}
}

func TestAnAccountComparesLimitsWithUseAndCountsKills(t *testing.T) {
	r := remembers{t, &memories{}, at(0)}
	for range 60 { // an estimate each minute
		r.run("a", time.Minute, time.Second, 1000*mib, still(400*mib))
	}
	r.tell("a", quantity.OOMKills, 1)
	r.tell("a", quantity.MemoryLimit, 420*mib)
	r.tell("a", quantity.OOMKills, 1) // the advised limit is 400 MiB and a quarter: above 420 MiB
	a := r.needs(r.now)[0].Account
	if a == nil || a.Kills != 2 || a.Prevented != 1 || a.Seconds < 3500 || a.Over/a.Seconds != 600*mib || a.Under != 0 || a.AdvisedUnder != 0 || !(a.AdvisedOver > 0 && a.AdvisedOver < a.Over/4) {
		t.Errorf("%+v", a)
	}
}

func TestTheNotesNameALeakAndWhatLimitsAreTooHigh(t *testing.T) {
	r := remembers{t, &memories{}, at(0)}
	r.run("a", 30*time.Hour, 30*time.Second, 1000*mib, still(400*mib))
	text := strings.Join(memoryNotes(r.needs(r.now)), "\n")
	if !strings.Contains(text, "572MiB above") || !strings.Contains(text, "limit of 1000MiB") {
		t.Errorf("%q", text)
	}
	n := r.run("a", time.Hour, 30*time.Second, 1000*mib, func(since time.Duration) float64 { return (400 + 300*since.Hours()) * mib })
	text = strings.Join(memoryNotes([]quantity.MemoryNeed{n}), "\n")
	if !strings.Contains(text, "does not stop: it reaches the limit in 1h") || n.Unlearnt == "" {
		t.Errorf("%q: %+v", text, n)
	}
}

// tellPod tells a sample of a pod.
func (r *remembers) tellPod(pod string, q quantity.Quantity, v float64) {
	r.t.Helper()
	if !r.observe(&trimtab.Sample{Workload: "w", Instance: pod, Quantity: q, Source: "kubernetes", Time: r.now, Value: v}) {
		r.t.Errorf("no space for %s", pod)
	}
}

func (r *remembers) needOf(pod string) *quantity.MemoryNeed {
	for _, n := range r.needs(r.now) {
		if n.Instance == pod {
			return &n
		}
	}
	return nil
}

func TestAPodThatIsKilledBeforeItWasReadNeedsMoreAndSoDoesTheNextOne(t *testing.T) {
	r := &remembers{t, &memories{}, at(0)}
	r.tellPod("a", quantity.MemoryLimit, 100*mib)
	r.tellPod("a", quantity.OOMKills, 1)
	if n := r.needOf("a"); n == nil || n.Need < 120*mib || n.Kills != 1 || n.Use != 100*mib {
		t.Fatalf("%+v", n)
	}
	r.now = r.now.Add(time.Minute)
	r.tellPod("b", quantity.MemoryLimit, 100*mib)
	if r.news = false; r.needOf("b") != nil {
		t.Error("something is known of a pod without a reading")
	}
	r.tellPod("b", quantity.WorkingSet, 10*mib)
	if !r.news {
		t.Error("its limit waits for a report")
	}
	if n := r.needOf("b"); n == nil || n.Need < 120*mib {
		t.Errorf("the next pod: %+v", n)
	}
}

func TestTwoSourcesOfOneKillCountItOnce(t *testing.T) {
	r := &remembers{t, &memories{}, at(0)}
	r.tellPod("a", quantity.WorkingSet, 90*mib)
	r.tellPod("a", quantity.OOMKills, 1)
	r.now = r.now.Add(time.Minute)
	r.tell("a", quantity.WorkingSet, 80*mib) // of host h: another instance
	r.observe(&trimtab.Sample{Workload: "w", Instance: "a", Quantity: quantity.OOMKills, Source: "prometheus", Time: r.now, Value: 1})
	r.tellPod("a", quantity.WorkingSet, 80*mib)
	if n := r.needOf("a"); n == nil || n.Kills != 1 {
		t.Errorf("%+v", n)
	}
	r.tellPod("a", quantity.OOMKills, 1)
	if n := r.needOf("a"); n == nil || n.Kills != 2 {
		t.Errorf("a second one of the same source: %+v", n)
	}
}

func TestAReadingEachQuarterOfAMinuteIsNotStaleBeforeTheNextButOne(t *testing.T) {
	r := &remembers{t, &memories{}, at(0)}
	for range 3 {
		r.tellPod("a", quantity.WorkingSet, 90*mib)
		r.now = r.now.Add(15 * time.Second)
	}
	r.now = r.now.Add(20 * time.Second)
	if r.needOf("a") == nil {
		t.Error("it is stale after 35 s")
	}
	r.now = r.now.Add(20 * time.Second)
	if n := r.needOf("a"); n != nil {
		t.Errorf("after 55 s: %+v", n)
	}
}

func TestANewPodGoesOnFromWhatWasLearntAndManyNamesDoNotFillTheSpace(t *testing.T) {
	r := &remembers{t, &memories{}, at(0)}
	for range 8 * 60 {
		r.now = r.now.Add(15 * time.Second)
		r.tellPod("old", quantity.WorkingSet, 200*mib)
	}
	was := r.needOf("old")
	for i := range 2 * quantity.MaxMemoryNeeds {
		r.now = r.now.Add(10 * time.Second)
		r.tellPod(fmt.Sprint("pod", i), quantity.WorkingSet, 100*mib)
	}
	r.tellPod("new", quantity.WorkingSet, 50*mib)
	n := r.needOf("new")
	if was == nil || was.Unlearnt != "" || n == nil || n.Need < 200*mib || n.Use != 50*mib || n.Unlearnt != "it started less than ten minutes ago" {
		t.Fatalf("%+v, then %+v", was, n)
	}
}

func TestOfMemoryAloneNeitherLoadNorPerformanceIsMissing(t *testing.T) {
	a, err := New(Config{Workloads: []Workload{{Name: "w", Resource: "cpu", LoadFrom: FromSpans, PerformanceFrom: FromSpans, MemoryAlone: true}}})
	if err != nil {
		t.Fatal(err)
	}
	var e *trimtab.Estimate
	for _, v := range a.Step(at(0), nil) {
		e, _ = v.(*trimtab.Estimate)
	}
	if e == nil || e.Hold == nil || e.Hold.Text != "no reading of its memory" || e.Inputs[0].Missing == "" {
		t.Fatalf("before the first reading %+v", e)
	}
	told := 0
	for k := 1; k < 60; k++ {
		a.Step(at(k), &trimtab.Sample{Workload: "w", Quantity: quantity.WorkingSet, Source: "memory", Time: at(k), Value: 300 * mib})
		for _, v := range a.Step(at(k), nil) {
			if e, told = v.(*trimtab.Estimate), told+1; e.Hold != nil || len(e.Inputs) != 1 || e.Inputs[0].Value != 300*mib || e.Inputs[0].Source != "memory" || len(e.Memory) != 1 {
				t.Fatalf("after %d s %+v", k, e)
			}
		}
	}
	if told < 5 || told > 8 {
		t.Errorf("%d estimates in a minute of rounds of 10 s", told)
	}
}
