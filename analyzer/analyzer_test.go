package analyzer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/analyzer/forecast"
	"github.com/trimtab/trimtab/analyzer/forecast/auto"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/quantity"
)

var start = time.Unix(1_700_000_000, 0).UTC()

func config(names ...string) analyzer.Config {
	c := analyzer.Config{Report: time.Second, Round: 4 * time.Second,
		Forecaster: func() forecast.Forecaster {
			f, err := auto.New("auto", auto.Config{Horizon: 4, Level: 0.9, Step: time.Second})
			if err != nil {
				panic(err)
			}
			return f
		}}
	for _, n := range names {
		c.Workloads = append(c.Workloads, analyzer.Workload{
			Name: n, SLO: analyzer.SLO{Latency: 100 * time.Millisecond, Fraction: 0.9}, Target: 0.9,
			Resource: "cpu", Min: 0.1, Max: 8,
			Learner: func() learn.Learner {
				l, err := gp.New(0.9)
				if err != nil {
					panic(err)
				}
				return l
			},
		})
	}
	return c
}

// newAnalyzer returns one of the named workloads, of w if none is named.
func newAnalyzer(names ...string) (*analyzer.Analyzer, error) {
	if len(names) == 0 {
		names = []string{"w"}
	}
	return analyzer.New(config(names...))
}

func make1(t *testing.T, c analyzer.Config) *analyzer.Analyzer {
	t.Helper()
	a, err := analyzer.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func sec(n float64) time.Time { return start.Add(time.Duration(n * float64(time.Second))) }

// sketch is the report of second n, with the given requests, under of which
// took 50 ms and the others 200 ms.
func sketch(name string, n int, requests, under float64) *trimtab.Sketch {
	s := &trimtab.Sketch{Workload: name, From: sec(float64(n)), To: sec(float64(n + 1)), Requests: requests,
		Spans: uint64(requests), Under: under, Threshold: 0.1}
	s.Latency.Add(0.05, under)
	s.Latency.Add(0.2, requests-under)
	return s
}

func holding(at float64, name string, cores, since float64) *trimtab.Holding {
	return &trimtab.Holding{Host: "h", Time: sec(at), Targets: []trimtab.KnobState{{
		KnobID: trimtab.KnobID{Host: "h", Workload: name, Resource: "cpu"}, Now: trimtab.Units(cores), Since: sec(since), Max: 8}}}
}

func estimates(t *testing.T, values []trimtab.Value) map[string]*trimtab.Estimate {
	t.Helper()
	out := map[string]*trimtab.Estimate{}
	for _, v := range values {
		if c, ok := v.(*colocation.Contributions); ok {
			if err := c.Validate(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		e, ok := v.(*trimtab.Estimate)
		if !ok {
			t.Fatalf("%T, want an estimate", v)
		}
		if err := e.Validate(); err != nil {
			t.Fatal(err)
		}
		out[e.Workload] = e
	}
	return out
}

func count(a *analyzer.Analyzer, name string, labels ...string) float64 {
	out := -1.0
	a.Counts(func(n string, v float64, l ...string) {
		if n == name && strings.Join(l, ",") == strings.Join(labels, ",") {
			out = v
		}
	})
	return out
}

func TestWhatIsPendingIsNotLearntAsTheAllocation(t *testing.T) {
	a := make1(t, config("checkout"))
	pending := holding(0, "checkout", 4, -60)
	in := trimtab.Units(2)
	pending.Targets[0].Effective = &in
	a.Step(sec(0), pending)
	a.Step(sec(1.6), sketch("checkout", 0, 40, 36))
	if e := estimates(t, a.Step(sec(1.7), nil))["checkout"]; e == nil || e.Allocation == nil || *e.Allocation != 2 || e.Hold != nil {
		t.Errorf("estimate %+v, want an allocation of 2", e)
	}
	a.Step(sec(2), holding(2, "checkout", 4, 2))
	var last *trimtab.Estimate
	for n := 1; n < 6; n++ {
		a.Step(sec(float64(n)+1.6), sketch("checkout", n, 40, 36))
		last = estimates(t, a.Step(sec(float64(n)+1.7), nil))["checkout"]
	}
	if last == nil || last.Allocation == nil || *last.Allocation != 4 {
		t.Errorf("estimate %+v, want an allocation of 4 once it is in force", last)
	}
}

func TestReportsBecomeEstimatesWithCurveLoadAndLatency(t *testing.T) {
	a := make1(t, config("checkout"))
	a.Step(sec(0), holding(0, "checkout", 2, -60))
	var last *trimtab.Estimate
	for n := range 20 {
		a.Step(sec(float64(n)+1.6), sketch("checkout", n, 40, 36))
		if e := estimates(t, a.Step(sec(float64(n)+1.7), nil))["checkout"]; e != nil {
			last = e
		}
	}
	if last == nil || last.Curve == nil || last.Load == nil || last.Hold != nil {
		t.Fatalf("estimate %+v", last)
	}
	if last.Reports != 20 || *last.Performance != 0.9 || *last.Allocation != 2 || last.Load.Now != 40 {
		t.Errorf("reports %d, performance %v, allocation %v, load %v", last.Reports, *last.Performance, *last.Allocation, last.Load.Now)
	}
	if p := last.Latency["p99"]; p < 0.19 || p > 0.21 {
		t.Errorf("p99 %v", p)
	}
	if b := last.Curve.Eval(2.2 * last.Load.Upper / 40); b.Lower > 0.9 || b.Lower < 0.8 || b.Upper < 1 {
		t.Errorf("band at the visited ratio: %+v", b)
	}
}

// round is what arrives in one round, in the order it was sent.
func rounds() [][]trimtab.Value {
	rng := rand.New(rand.NewPCG(1, 2))
	var out [][]trimtab.Value
	for r := range 12 {
		var in []trimtab.Value
		for _, name := range []string{"a", "b"} {
			in = append(in, holding(float64(4*r), name, 1+float64(r%3), float64(4*r)))
			in[len(in)-1].(*trimtab.Holding).Host = "host-" + name
			for k := range 4 {
				n := 4*r + k
				for p := range 2 {
					s := sketch(name, n, 10+float64(rng.IntN(10)), float64(rng.IntN(10)))
					s.Partition = p
					in = append(in, s)
				}
			}
			in = append(in, &trimtab.Sample{Workload: name, Quantity: quantity.Usage, Source: "cgroup", Time: sec(float64(4*r + 2)), Value: rng.Float64()})
		}
		out = append(out, in)
	}
	return out
}

func run(t *testing.T, shuffle *rand.Rand) []byte {
	t.Helper()
	c := config("a", "b")
	c.Partitions = 2
	a := make1(t, c)
	var out []trimtab.Value
	for r, in := range rounds() {
		if shuffle != nil {
			in = append(in, in[:len(in)/3]...)
			shuffle.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
		}
		now := sec(float64(4*r + 5))
		for _, v := range in {
			a.Step(now, v)
		}
		out = append(out, a.Step(now.Add(100*time.Millisecond), nil)...)
	}
	b, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDuplicatesAndAnyOrderInsideARoundChangeNoBit(t *testing.T) {
	want := run(t, nil)
	if len(want) < 1000 {
		t.Fatalf("only %d bytes of estimates", len(want))
	}
	for seed := range uint64(20) {
		if d := cmp.Diff(string(want), string(run(t, rand.New(rand.NewPCG(seed, 0))))); d != "" {
			t.Fatalf("seed %d: %s", seed, d)
		}
	}
}

func TestReportsAroundAChangeOfTheAllocationAreSetAside(t *testing.T) {
	a := make1(t, config("w"))
	a.Step(sec(0), holding(0, "w", 2, -60))
	for n := range 10 {
		if n == 5 {
			a.Step(sec(6.5), holding(5.5, "w", 4, 5.5))
		}
		a.Step(sec(float64(n)+1.6), sketch("w", n, 40, 36))
		a.Step(sec(float64(n)+1.7), nil)
	}
	// Second 5 has the change in it, second 6 begins within the settling time.
	if got := count(a, "trimtab_learn_reports_total", "transient"); got != 2 {
		t.Errorf("%v transients, want 2", got)
	}
	if got := count(a, "trimtab_learn_reports_total", "learned"); got != 8 {
		t.Errorf("%v learned, want 8", got)
	}
}

func TestWithoutAKnownAllocationOnlyTheLoadIsLearnt(t *testing.T) {
	a := make1(t, config("w"))
	var e *trimtab.Estimate
	for n := range 5 {
		a.Step(sec(float64(n)+1.6), sketch("w", n, 40, 36))
		e = estimates(t, a.Step(sec(float64(n)+1.7), nil))["w"]
	}
	if e == nil || e.Curve != nil || e.Load == nil || e.Allocation != nil || e.Reports != 0 {
		t.Fatalf("%+v", e)
	}
}

func TestAnUnlimitedAllocationCountsAsTheMaximum(t *testing.T) {
	a := make1(t, config("w"))
	h := holding(0, "w", 0, -60)
	h.Targets[0].Now = trimtab.Unlimited()
	a.Step(sec(0), h)
	a.Step(sec(1.6), sketch("w", 0, 40, 36))
	e := estimates(t, a.Step(sec(1.7), nil))["w"]
	if e == nil || e.Allocation == nil || *e.Allocation != 8 || e.Reports != 1 {
		t.Fatalf("%+v", e)
	}
}

func TestAWorkloadWhoseSpansStopHoldsAndSaysSinceWhen(t *testing.T) {
	a := make1(t, config("w"))
	a.Step(sec(0), holding(0, "w", 2, -60))
	for n := range 3 {
		a.Step(sec(float64(n)+1.6), sketch("w", n, 40, 36))
		if e := estimates(t, a.Step(sec(float64(n)+1.7), nil))["w"]; e.Hold != nil {
			t.Fatalf("second %d holds: %s", n, e.Hold)
		}
	}
	var holds []string
	for n := 5; n < 40; n++ {
		for _, e := range estimates(t, a.Step(sec(float64(n)), nil)) {
			if e.Hold == nil {
				t.Fatalf("second %d: an estimate without news and without hold", n)
			}
			holds = append(holds, e.Hold.Text)
		}
	}
	if len(holds) == 0 || !strings.Contains(holds[0], "no load from spans for ") {
		t.Fatalf("holds %q", holds)
	}
	if !strings.Contains(holds[len(holds)-1], "stale after 12s") {
		t.Errorf("last hold %q", holds[len(holds)-1])
	}
}

func TestAWorkloadThatNeverReportedHolds(t *testing.T) {
	a := make1(t, config("w"))
	e := estimates(t, a.Step(sec(0), nil))["w"]
	if e == nil || e.Hold == nil || e.Load != nil || e.Curve != nil {
		t.Fatalf("%+v", e)
	}
}

func TestSamplesWithoutValueAndEmptySketchesAreNotZero(t *testing.T) {
	c := config("w")
	c.Workloads[0].LoadFrom = analyzer.FromPrometheus
	a := make1(t, c)
	a.Step(sec(0), holding(0, "w", 2, -60))
	load := func(at, v float64, missing string) {
		a.Step(sec(at+0.1), &trimtab.Sample{Workload: "w", Quantity: quantity.Load, Source: "prometheus", Time: sec(at), Value: v, Missing: missing})
	}
	load(1, 50, "")
	a.Step(sec(1.6), sketch("w", 0, 40, 36))
	e := estimates(t, a.Step(sec(1.7), nil))["w"]
	if e.Hold != nil || e.Load.Now != 50 {
		t.Fatalf("hold %q, load %+v", e.Hold, e.Load)
	}
	load(2, 0, "no series")
	a.Step(sec(2.6), sketch("w", 1, 40, 36))
	e = estimates(t, a.Step(sec(2.7), nil))["w"]
	if !strings.Contains(e.Hold.Text, "no series") || e.Load.Now != 50 {
		t.Fatalf("hold %q, load %+v", e.Hold, e.Load)
	}
	a.Step(sec(3.6), sketch("w", 2, 0, 0))
	if got := count(a, "trimtab_learn_inputs_set_aside_total", "empty"); got != 1 {
		t.Errorf("%v empty sketches counted", got)
	}
}

func TestTimesInOurFutureAndLateSketchesAreSetAside(t *testing.T) {
	a := make1(t, config("w"))
	a.Step(sec(0), nil)
	a.Step(sec(1), sketch("w", 1e8, 40, 36))
	a.Step(sec(1.6), sketch("w", 0, 40, 36))
	if e := estimates(t, a.Step(sec(1.7), nil))["w"]; e == nil || e.Load.Now != 40 {
		t.Fatalf("%+v", e)
	}
	a.Step(sec(1.8), sketch("w", 0, 4000, 36))
	a.Step(sec(1.8), sketch("w", -500, 4000, 36))
	a.Step(sec(1.9), nil)
	for label, want := range map[string]float64{"misdated": 1, "late": 2} {
		if got := count(a, "trimtab_learn_inputs_set_aside_total", label); got != want {
			t.Errorf("%v %s, want %v", got, label, want)
		}
	}
}

func TestALostPartitionDoesNotHalveTheLoad(t *testing.T) {
	c := config("w")
	c.Partitions = 2
	a := make1(t, c)
	a.Step(sec(1.6), sketch("w", 0, 40, 36))
	a.Step(sec(1.7), nil)
	e := estimates(t, a.Step(sec(2.7), nil))["w"]
	if e == nil || e.Load.Now != 80 {
		t.Fatalf("%+v", e)
	}
	// One request in one of two partitions is nothing unusual.
	a.Step(sec(3.6), sketch("w", 2, 1, 1))
	a.Step(sec(3.7), nil)
	if e = estimates(t, a.Step(sec(4.7), nil))["w"]; e == nil || e.Load.Now != 1 {
		t.Fatalf("%+v", e)
	}
}

func TestUnknownWorkloadsAreDiscoveredOnlyWhenAsked(t *testing.T) {
	for _, discover := range []bool{false, true} {
		c := config()
		c.Discover, c.MaxDiscovered = discover, 2
		a := make1(t, c)
		for i := range 5 {
			a.Step(sec(1.6), sketch(fmt.Sprint("found-", i), 0, 40, 36))
		}
		es := estimates(t, a.Step(sec(1.7), nil))
		if want := map[bool]int{false: 0, true: 2}[discover]; len(es) != want {
			t.Fatalf("discover %v: %d estimates, want %d", discover, len(es), want)
		}
		for _, e := range es {
			if e.Load == nil || e.Latency["p50"] == 0 || e.Curve != nil || e.Hold != nil {
				t.Errorf("%+v", e)
			}
		}
	}
}

func TestAStateThatIsTakenAloneIsThatOfTheSnapshot(t *testing.T) {
	a := make1(t, config("w", "v", "silent"))
	for n := range 20 {
		for _, name := range []string{"w", "v"} {
			a.Step(sec(float64(n)+1.6), sketch(name, n, 40+float64(n%7), 36))
		}
		a.Step(sec(float64(n)+1.7), nil)
	}
	all, names := a.Snapshot(), a.States()
	if !slices.Equal(names, []string{"v", "w"}) || len(all) != len(names) {
		t.Fatalf("states of %v, want those of v and w, which reported", names)
	}
	for _, name := range append(names, "silent", "nobody") {
		state, ok := a.State(name)
		if want, there := all[name]; ok != there || !bytes.Equal(state, want) {
			t.Errorf("the state of %s is %d bytes, %v, in the snapshot %d, %v", name, len(state), ok, len(want), there)
		}
	}
}

func TestARestoredAnalyzerGivesTheSameEstimates(t *testing.T) {
	a := make1(t, config("w"))
	feed := func(a *analyzer.Analyzer, n int) []trimtab.Value {
		a.Step(sec(float64(n)+1.6), holding(float64(n), "w", 2, -60))
		a.Step(sec(float64(n)+1.6), sketch("w", n, 40+float64(n%7), 36))
		return a.Step(sec(float64(n)+1.7), nil)
	}
	for n := range 100 {
		feed(a, n)
	}
	b := make1(t, config("w"))
	for name, state := range a.Snapshot() {
		if err := b.Restore(name, state); err != nil {
			t.Fatal(err)
		}
		state[len(state)/2] ^= 4
		if err := b.Restore(name, state); err == nil {
			t.Error("a damaged state was taken")
		}
	}
	for n := 99; n < 120; n++ {
		x, _ := json.Marshal(feed(a, n))
		y, _ := json.Marshal(feed(b, n))
		if n > 99 && string(x) != string(y) {
			t.Fatalf("second %d: %s", n, cmp.Diff(x, y))
		}
	}
}

func TestWhenTheAllocationChangesAllTheTimeItIsLearntFromAllTheSame(t *testing.T) {
	a := make1(t, config("w"))
	for n := range 30 {
		a.Step(sec(float64(n)+0.3), holding(float64(n)+0.3, "w", 2+float64(n%2), float64(n)+0.25))
		a.Step(sec(float64(n)+1.6), sketch("w", n, 40, 36))
		a.Step(sec(float64(n)+1.7), nil)
	}
	if got := count(a, "trimtab_learn_reports_total", "learned"); got < 20 {
		t.Errorf("%v of 30 learned", got)
	}
}

func TestPartsThatNobodySentOnPurposeStayBounded(t *testing.T) {
	a := make1(t, config("w"))
	for i := range 20_000 {
		s := sketch("w", -i, 40, 36)
		a.Step(sec(1), s)
		odd := *s
		odd.From = sec(0).Add(time.Duration(i))
		odd.To = odd.From.Add(time.Second / 2)
		a.Step(sec(1), &odd)
		odd.Partition = i
		a.Step(sec(1), &odd)
	}
	out := estimates(t, a.Step(sec(5), nil))
	if len(out) != 1 {
		t.Fatalf("%d estimates", len(out))
	}
	if got := count(a, "trimtab_learn_inputs_set_aside_total", "misplaced"); got != 19_999 {
		t.Errorf("%v misplaced", got)
	}
}

// TestAbsentDataLowersNobody takes inputs away in every way and at random,
// and demands that estimates say so once a round has passed.
func TestAbsentDataLowersNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := config("w")
		fromSpans := rapid.Bool().Draw(t, "load from spans")
		if !fromSpans {
			c.Workloads[0].LoadFrom = analyzer.FromPrometheus
		}
		a, err := analyzer.New(c)
		if err != nil {
			t.Fatal(err)
		}
		a.Step(sec(0), holding(0, "w", 2, -60))
		lastLoad, lastSketch := 0.0, 0.0
		var gaps []float64 // between samples of the load
		for n := range 60 {
			end := float64(n) + 1
			at := sec(end + 0.6)
			switch rapid.SampledFrom([]string{"all", "all", "none", "none", "spans", "empty", "missing", "future"}).Draw(t, "inputs") {
			case "all":
				a.Step(at, sketch("w", n, 40, 36))
				a.Step(at, &trimtab.Sample{Workload: "w", Quantity: quantity.Load, Source: "prometheus", Time: sec(end), Value: 40})
				if lastLoad > 0 {
					gaps = append(gaps, end-lastLoad)
				}
				lastLoad, lastSketch = end, end
			case "spans":
				a.Step(at, sketch("w", n, 40, 36))
				lastSketch = end
			case "empty":
				a.Step(at, sketch("w", n, 0, 0))
			case "missing":
				a.Step(at, &trimtab.Sample{Workload: "w", Quantity: quantity.Load, Source: "prometheus", Time: sec(end), Missing: "no series"})
			case "future":
				a.Step(at, sketch("w", n+1000, 1, 1))
			}
			if fromSpans {
				lastLoad = lastSketch
			}
			for _, v := range a.Step(sec(end+0.8), nil) {
				if err := v.Validate(); err != nil {
					t.Fatal(err)
				}
				e, ok := v.(*trimtab.Estimate)
				if !ok {
					continue
				}
				bound := 5.0
				if latest := gaps[max(0, len(gaps)-4):]; len(latest) > 0 && !fromSpans {
					bound = max(bound, 2*slices.Min(latest)+1)
				}
				if e.Hold == nil && (end-lastSketch > 5 || end-lastLoad > bound) {
					t.Fatalf("second %d: no hold with a load of %v and spans of %v s ago: %+v", n, end-lastLoad, end-lastSketch, e)
				}
				if e.Load != nil && (e.Load.Upper < 40 || e.Load.Now < 40) {
					t.Fatalf("second %d: the load fell with its source: %+v", n, e.Load)
				}
			}
		}
	})
}

// TestASourceIsLateByItsOwnPace: the newest scrape is up to two scrape intervals
// old before the next one is seen, however often the server is asked.
func TestASourceIsLateByItsOwnPace(t *testing.T) {
	for _, every := range []int{1, 5, 15, 30} {
		c := config("w")
		c.Round = 5 * time.Second
		c.Workloads[0].LoadFrom, c.Workloads[0].PerformanceFrom = analyzer.FromPrometheus, analyzer.FromPrometheus
		a := make1(t, c)
		a.Step(sec(0), holding(0, "w", 2, -60))
		scraped := func(second, at int) (hold string) {
			for _, q := range []quantity.Quantity{quantity.Load, quantity.Performance} {
				// The age of a scrape is known to some milliseconds only.
				of := sec(float64(at) + 0.3 + 0.004*float64(second%3))
				a.Step(sec(float64(second)), &trimtab.Sample{Workload: "w", Quantity: q, Source: "prometheus", Time: of, Window: 20, Value: 0.9, Requests: 20})
			}
			hold = "no estimate"
			for _, e := range estimates(t, a.Step(sec(float64(second)+0.9), nil)) {
				if hold = ""; e.Hold != nil {
					hold = e.Hold.Text
				}
			}
			return hold
		}
		second := 0
		for ; second < 12*every; second++ { // asked every second
			hold := scraped(second, second-second%every)
			if second > 3*every && hold != "" && hold != "no estimate" {
				t.Errorf("scraped every %d s, second %d: %s", every, second, hold)
			}
		}
		held := ""
		for last := second - every; second < 20*every && held == ""; second++ {
			if hold := scraped(second, last); hold != "no estimate" {
				held = hold
			}
		}
		if held == "" {
			t.Errorf("scraped every %d s: no scrape for %d s is not late", every, 8*every)
		}
	}
}

// TestSlowSamplesDoNotExcuseSpansThatStop: load and performance come from spans,
// and samples of both every half minute besides.
func TestSlowSamplesDoNotExcuseSpansThatStop(t *testing.T) {
	c := config("w")
	c.Round = 5 * time.Second
	a := make1(t, c)
	a.Step(sec(0), holding(0, "w", 2, -60))
	const stopped = 70
	held := false
	for second := range stopped + 10 {
		if second < stopped {
			a.Step(sec(float64(second)+1.6), sketch("w", second, 40, 36))
		}
		if second%30 == 0 {
			for _, q := range []quantity.Quantity{quantity.Load, quantity.Performance} {
				a.Step(sec(float64(second)+1.6), &trimtab.Sample{Workload: "w", Quantity: q, Source: "prometheus", Time: sec(float64(second)), Window: 60, Value: 0.9})
			}
		}
		for _, e := range estimates(t, a.Step(sec(float64(second)+1.7), nil)) {
			held = held || second > stopped && e.Hold != nil
		}
	}
	if !held {
		t.Error("no hold in the 10 s after the last span")
	}
}
