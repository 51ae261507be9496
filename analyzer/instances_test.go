package analyzer_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/quantity"
)

// spread is what a host says of instances of w, by name, with a maximum of 8 each.
func spread(host string, at float64, cores map[string]float64, since float64) *trimtab.Holding {
	h := &trimtab.Holding{Pool: "p", Host: host, Time: sec(at)}
	for name, v := range cores {
		k := trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "p", Host: host, Workload: "w", Instance: name, Resource: "cpu"},
			Now: trimtab.Units(v), Since: sec(since), Max: 8}
		if v < 0 {
			k.Now = trimtab.Unlimited()
		}
		h.Targets = append(h.Targets, k)
	}
	return h
}

// of is a sample of one instance of w.
func of(host, instance string, q quantity.Quantity, at, v float64) *trimtab.Sample {
	return &trimtab.Sample{Workload: "w", Host: host, Instance: instance, Quantity: q, Source: "cgroup", Time: sec(at), Window: 1, Value: v}
}

func TestTheCurveIsOverTheEffectiveAllocationOfAllInstances(t *testing.T) {
	a := make1(t, config("w"))
	var last *trimtab.Estimate
	for n := range 20 {
		at := float64(n)
		a.Step(sec(at), spread("h1", at, map[string]float64{"": 2}, -60))
		a.Step(sec(at), spread("h2", at, map[string]float64{"a": 3, "b": 4}, -60))
		a.Step(sec(at+1.6), sketch("w", n, 40, 36))
		last = estimates(t, a.Step(sec(at+1.7), nil))["w"]
	}
	if last.Allocation == nil || *last.Allocation != 6 || last.Reports != 20 || last.Hold != nil {
		t.Fatalf("%+v, want 20 reports of an allocation of 6", last)
	}
	if b := last.Curve.Eval(6.6 * last.Load.Upper / 40); b.Lower > 0.9 || b.Lower < 0.8 {
		t.Errorf("band where the reports were: %+v", b)
	}
	if most := last.Curve.Knots[len(last.Curve.Knots)-1].Allocation; most < 24 {
		t.Errorf("the curve ends at %v: three instances may have 8 each", most)
	}
	if last.Shares != nil {
		t.Errorf("%v: no load of an instance is known", last.Shares)
	}
}

func TestTheTargetsOfAWorkloadNeedNotStandTogetherInAHolding(t *testing.T) {
	allocations := func(order ...string) map[string]float64 {
		a := make1(t, config("w", "x"))
		h := &trimtab.Holding{Pool: "p", Host: "h", Time: sec(0)}
		for _, name := range order {
			workload, instance, _ := strings.Cut(name, "/")
			h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: workload, Instance: instance, Resource: "cpu"},
				Now: trimtab.Units(float64(len(instance))), Since: sec(-60), Max: 8})
		}
		before := slices.Clone(h.Targets)
		a.Step(sec(0), h)
		if diff := cmp.Diff(before, h.Targets); diff != "" {
			t.Errorf("the holding was changed: %s", diff)
		}
		out := map[string]float64{}
		a.Step(sec(1.6), sketch("w", 0, 40, 36))
		a.Step(sec(1.6), sketch("x", 0, 40, 36))
		for name, e := range estimates(t, a.Step(sec(1.7), nil)) {
			out[name] = *e.Allocation
		}
		return out
	}
	want := map[string]float64{"w": 3, "x": 4} // of w the least, three times
	for _, order := range [][]string{{"w/a", "w/bb", "w/ccc", "x/aaaa"}, {"w/a", "x/aaaa", "w/bb", "w/ccc"}, {"x/aaaa", "w/a", "w/bb", "w/ccc"}, {"w/a", "w/bb", "x/aaaa", "w/ccc"}} {
		if got := allocations(order...); !maps.Equal(got, want) {
			t.Errorf("%v: %v, want %v", order, got, want)
		}
	}
}

func TestInstancesWithoutALimitCountAsTheirMaximumTogether(t *testing.T) {
	a := make1(t, config("w"))
	a.Step(sec(0), spread("h1", 0, map[string]float64{"a": -1, "b": -1}, -60))
	a.Step(sec(1.6), sketch("w", 0, 40, 36))
	if e := estimates(t, a.Step(sec(1.7), nil))["w"]; e.Allocation == nil || *e.Allocation != 16 {
		t.Errorf("%+v, want 16", e)
	}
}

func TestWhereTheLoadOfEveryInstanceIsKnownItSetsTheSharesAndTheAllocation(t *testing.T) {
	a := make1(t, config("w"))
	a.Step(sec(0), spread("h1", 0, map[string]float64{"": 2}, -60))
	a.Step(sec(0), spread("h2", 0, map[string]float64{"a": 2}, -60))
	a.Step(sec(0.9), of("h1", "", quantity.Load, 0.9, 30))
	a.Step(sec(1.6), sketch("w", 0, 40, 36))
	if e := estimates(t, a.Step(sec(1.7), nil))["w"]; e.Shares != nil || *e.Allocation != 4 {
		t.Errorf("allocation %v, shares %v: the load of one of two is known", *e.Allocation, e.Shares)
	}
	a.Step(sec(1.9), of("h1", "", quantity.Load, 1.9, 30))
	a.Step(sec(1.9), of("h2", "a", quantity.Load, 1.9, 10))
	a.Step(sec(2.6), sketch("w", 1, 40, 36))
	e := estimates(t, a.Step(sec(2.7), nil))["w"]
	want := []trimtab.LoadShare{{Host: "h1", Share: 0.75}, {Host: "h2", Instance: "a", Share: 0.25}}
	if d := cmp.Diff(want, e.Shares); d != "" || math.Abs(*e.Allocation-2/0.75) > 1e-9 {
		t.Errorf("allocation %v, %s", *e.Allocation, d)
	}
	// The load is that of the spans all the same.
	if e.Load.Now != 40 {
		t.Errorf("load %v, want 40", e.Load.Now)
	}
}

func TestTheLoadOfAWorkloadIsTheSumOverItsInstancesAndMissingWithOneOfThem(t *testing.T) {
	c := config("w")
	c.Workloads[0].LoadFrom = analyzer.FromPrometheus
	a := make1(t, c)
	a.Step(sec(0), spread("h1", 0, map[string]float64{"a": 2, "b": 2}, -60))
	var last *trimtab.Estimate
	for n := range 30 {
		at := float64(n) + 0.9
		a.Step(sec(at), of("h1", "a", quantity.Load, at, 30))
		if n < 10 {
			a.Step(sec(at), of("h1", "b", quantity.Load, at, 10))
		}
		a.Step(sec(float64(n)+1.6), sketch("w", n, 40, 36))
		if e := estimates(t, a.Step(sec(float64(n)+1.7), nil))["w"]; e != nil {
			last = e
		}
		switch {
		case last.Load == nil || math.Abs(last.Load.Now-40) > 1e-9:
			t.Fatalf("second %d: load %+v, want 40", n, last.Load)
		case n < 10 && last.Hold != nil:
			t.Fatalf("second %d: %s", n, last.Hold)
		}
	}
	if last.Hold == nil || last.Hold.Code != codes.HeldMissing || !strings.Contains(last.Hold.Text, "no sample of instance b on host h1") {
		t.Errorf("hold %v, want one that names the instance", last.Hold)
	}
}

func TestWhatIsToldOfTheWorkloadAsAWholeCountsAsItself(t *testing.T) {
	c := config("w")
	c.Workloads[0].LoadFrom = analyzer.FromPrometheus
	a := make1(t, c)
	a.Step(sec(0), spread("h1", 0, map[string]float64{"a": 2, "b": 2}, -60))
	for n := range 5 {
		at := float64(n) + 0.9
		for _, name := range []string{"a", "b"} { // later than what is told of all
			a.Step(sec(at), of("h1", name, quantity.Load, at+0.05, 1))
		}
		a.Step(sec(at), &trimtab.Sample{Workload: "w", Quantity: quantity.Load, Source: "prometheus", Time: sec(at), Value: 50})
		a.Step(sec(float64(n)+1.6), sketch("w", n, 40, 36))
		e := estimates(t, a.Step(sec(float64(n)+1.7), nil))["w"]
		if e.Load.Now != 50 || len(e.Shares) != 2 {
			t.Errorf("second %d: load %v, shares %v: want 50, and two shares", n, e.Load.Now, e.Shares)
		}
	}
}

func TestAnInstanceWithoutASampleOfItsUseIsNamedAmongTheInputs(t *testing.T) {
	a := make1(t, config("w"))
	a.Step(sec(0), spread("h1", 0, map[string]float64{"a": 2, "b": 2}, -60))
	var last *trimtab.Estimate
	for n := range 10 {
		at := float64(n) + 0.9
		a.Step(sec(at), of("h1", "a", quantity.Usage, at, 1))
		a.Step(sec(float64(n)+1.6), sketch("w", n, 40, 36))
		last = estimates(t, a.Step(sec(float64(n)+1.7), nil))["w"]
	}
	b, _ := json.Marshal(last.Inputs)
	if !strings.Contains(string(b), `"missing":"no sample of instance b on host h1"`) || last.Hold != nil {
		t.Errorf("inputs %s, hold %v", b, last.Hold)
	}
}

// A floor is what is in use of one instance: the memory is idle where it is in all.
func TestMemoryIsIdleWhereItIsInEveryInstance(t *testing.T) {
	for name, c := range map[string]struct {
		floors map[string]float64
		idle   bool
	}{
		"in all":              {map[string]float64{"a": 2 * gib, "b": gib}, true},
		"in one of two":       {map[string]float64{"a": 2 * gib, "b": 4 * gib}, false},
		"one is not measured": {map[string]float64{"a": 2 * gib, "b": 0}, false},
	} {
		a, r := make1(t, withMemory()), rand.New(rand.NewPCG(11, 12))
		var e *trimtab.Estimate
		for n := range 40 {
			now := float64(n) + 1.6
			a.Step(sec(now), sketch("w", n, 100, math.Round(60+3*r.NormFloat64())))
			h := spread("h", now, map[string]float64{"a": 1, "b": 1}, 0)
			for instance, floor := range c.floors {
				h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "w", Instance: instance, Resource: "memory"},
					Now: trimtab.Units(4 * gib), Since: sec(0), Floor: floor, Max: 8 * gib})
			}
			a.Step(sec(now), h)
			if v := estimates(t, a.Step(sec(now+0.1), nil))["w"]; v != nil {
				e = v
			}
		}
		if got := e.Allocations["memory"]; got != 8*gib {
			t.Errorf("%s: %v bytes, want the effective 8 GiB", name, got)
		}
		if b := e.Curves["memory"].Eval(9 * gib); c.idle != (b.Lower >= 0.9) {
			t.Errorf("%s: memory is known to be enough for %+v", name, b)
		}
	}
}

func TestOfManyInstancesTooDuplicatesAndAnyOrderBetweenTicksChangeNoBit(t *testing.T) {
	run := func(shuffle *rand.Rand) string {
		c := config("w")
		c.Workloads[0].Queue = true
		a, rng := make1(t, c), rand.New(rand.NewPCG(3, 4))
		var out []trimtab.Value
		for n := range 40 {
			at := float64(n)
			in := []trimtab.Value{sketch("w", n, 40, float64(20+rng.IntN(20)))}
			for _, host := range []string{"h1", "h2"} {
				cores := map[string]float64{"a": 1 + float64(n/9)}
				if n < 15 || n > 25 || host == "h1" {
					cores["b"] = 2
				}
				h := spread(host, at, cores, -60)
				for i := range h.Targets {
					if h.Targets[i].Instance == "a" {
						h.Targets[i].Since = sec(float64(n - n%9))
					}
				}
				in = append(in, h)
				for _, instance := range slices.Sorted(maps.Keys(cores)) {
					in = append(in, of(host, instance, quantity.Usage, at+rng.Float64()/2, 0.5), of(host, instance, quantity.Load, at+0.5, 10+float64(rng.IntN(5))))
				}
			}
			if shuffle != nil {
				in = append(in, in[:len(in)/2]...)
				shuffle.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
			}
			for _, v := range in {
				a.Step(sec(at+1.6), v)
			}
			out = append(out, a.Step(sec(at+1.7), nil)...)
		}
		b, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	want := run(nil)
	if !strings.Contains(want, `"shares":[{"host":"h1","instance":"a","share":`) || !strings.Contains(want, `"cost":`) {
		t.Fatalf("no shares or no cost in %.2000s", want)
	}
	for seed := range uint64(10) {
		if d := cmp.Diff(want, run(rand.New(rand.NewPCG(seed, 0)))); d != "" {
			t.Fatalf("seed %d: %.3000s", seed, d)
		}
	}
}

// A hundred hosts with twenty instances each cost what two thousand knobs cost.
func BenchmarkHoldings(b *testing.B) {
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("w%04d", i))
	}
	a, err := newAnalyzer(names...)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for n := range b.N {
		for k := range 100 {
			h := &trimtab.Holding{Pool: "p", Host: fmt.Sprintf("h%03d", k), Time: sec(float64(n))}
			for i := range 20 {
				h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "p", Host: h.Host, Workload: names[(k*20+i)%1000], Resource: "cpu"},
					Now: trimtab.Units(2), Since: sec(0), Max: 8})
			}
			a.Step(h.Time, h)
		}
	}
}

// Without the host whose clock differs, the other would be believed to do it all with
// half of what the workload has.
func TestTheInstancesOfAHostWhoseClockDiffersByMinutesCountAsTheyAre(t *testing.T) {
	for _, skew := range []float64{-300, -40, 0, 300} {
		a := make1(t, config("w"))
		a.Step(sec(-1), spread("h2", -1+skew, map[string]float64{"": 4}, -60+skew)) // it may be kept from long ago
		var last *trimtab.Estimate
		for n := range 100 {
			at := float64(n)
			a.Step(sec(at), spread("h1", at, map[string]float64{"": 3}, -60))
			a.Step(sec(at), spread("h2", at+skew, map[string]float64{"": 4}, -60+skew))
			a.Step(sec(at+1.6), sketch("w", n, 40, 36))
			if e := estimates(t, a.Step(sec(at+1.7), nil))["w"]; n > 1 {
				if last = e; last.Allocation == nil || *last.Allocation != 6 {
					t.Fatalf("second %d, a clock that differs by %v s: %v, want the 6 that two instances have", n, skew, show(last.Allocation))
				}
			}
		}
		if n := count(a, "trimtab_learn_inputs_set_aside_total", "misdated"); (n > 90) != (skew != 0) {
			t.Errorf("a clock that differs by %v s: %v were counted", skew, n)
		}
	}
}

func show(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return fmt.Sprint(*v)
}

func TestAnInstanceOnAHostThatTheConfigurationDoesNotNameIsNotLearntFrom(t *testing.T) {
	c := config("w")
	c.Workloads[0].Host = "h1"
	a := make1(t, c)
	var last *trimtab.Estimate
	for n := range 10 {
		at := float64(n)
		a.Step(sec(at), spread("h1", at, map[string]float64{"": 3}, -60))
		a.Step(sec(at), spread("h2", at, map[string]float64{"": 0.1, "more": 0.1}, -60))
		a.Step(sec(at), of("h2", "", quantity.Load, at, 1e6))
		a.Step(sec(at+1.6), sketch("w", n, 40, 36))
		last = estimates(t, a.Step(sec(at+1.7), nil))["w"]
	}
	if last.Allocation == nil || *last.Allocation != 3 || last.Hold != nil {
		t.Errorf("%s: %+v, want the 3 that it has on its own host", show(last.Allocation), last.Hold)
	}
	if n := count(a, "trimtab_learn_inputs_set_aside_total", "misplaced"); n != 30 {
		t.Errorf("%v were counted, want three a second", n)
	}
}
