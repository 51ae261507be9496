package analyzer_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/quantity"
)

// load is what the spans say of one instance.
func load(host, name string, requests float64) trimtab.InstanceLoad {
	l := trimtab.InstanceLoad{Host: host, Requests: requests}
	if name != "" {
		l.Names = []string{name}
	}
	return l
}

// serving is a sketch of w in second n with as many more requests of no instance.
func serving(n int, more float64, loads ...trimtab.InstanceLoad) *trimtab.Sketch {
	requests := more
	for _, l := range loads {
		requests += l.Requests
	}
	s := sketch("w", n, requests, requests)
	s.Instances = loads
	return s
}

// pair is one instance of w on host h1 and one on h2, with 2 cores each.
func pair(a *analyzer.Analyzer, at float64) {
	a.Step(sec(at), spread("h1", at, map[string]float64{"x": 2}, -60))
	a.Step(sec(at), spread("h2", at, map[string]float64{"a": 2}, -60))
}

// seconds plays seconds from to to, and returns the last estimate.
func seconds(t *testing.T, a *analyzer.Analyzer, from, to int, hosts func(*analyzer.Analyzer, float64), of func(n int) *trimtab.Sketch) (last *trimtab.Estimate) {
	t.Helper()
	for n := from; n < to; n++ {
		hosts(a, float64(n))
		s := of(n)
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		a.Step(sec(float64(n)+1.6), s)
		if e := estimates(t, a.Step(sec(float64(n)+1.7), nil))["w"]; e != nil {
			last = e
		}
	}
	return last
}

func shares(of ...trimtab.LoadShare) []trimtab.LoadShare { return of }

func share(host, instance string, f float64) trimtab.LoadShare {
	return trimtab.LoadShare{Host: host, Instance: instance, Share: f}
}

func TestSpansThatNameEveryInstanceSetTheSharesAndTheAllocation(t *testing.T) {
	a := make1(t, config("w"))
	e := seconds(t, a, 0, 4, pair, func(n int) *trimtab.Sketch { return serving(n, 0, load("h1", "x", 75), load("h2", "a", 25)) })
	if d := cmp.Diff(shares(share("h1", "x", 0.75), share("h2", "a", 0.25)), e.Shares); d != "" || math.Abs(*e.Allocation-2/0.75) > 1e-9 {
		t.Errorf("allocation %v, %s", *e.Allocation, d)
	}
	if e.Load.Now != 100 || e.Hold != nil {
		t.Errorf("load %v, %v", e.Load.Now, e.Hold)
	}
}

func TestAnInstanceIsTheOneThatItsAgentCallsSoElseTheOnlyOneOnItsHost(t *testing.T) {
	three := func(a *analyzer.Analyzer, at float64) {
		a.Step(sec(at), spread("h1", at, map[string]float64{"x": 2}, -60))
		a.Step(sec(at), spread("h2", at, map[string]float64{"a": 2, "b": 2}, -60))
	}
	one := func(a *analyzer.Analyzer, at float64) {
		a.Step(sec(at), spread("h", at, map[string]float64{"a": 2, "b": 2}, -60))
	}
	all := shares(share("h1", "x", 0.5), share("h2", "a", 0.25), share("h2", "b", 0.25))
	pod := load("h2", "b", 100)
	pod.Names = []string{"0c1e-random", "b", "container"}
	for what, c := range map[string]struct {
		hosts func(*analyzer.Analyzer, float64)
		loads []trimtab.InstanceLoad
		want  []trimtab.LoadShare
	}{
		"by host and name":                   {three, []trimtab.InstanceLoad{load("h1", "x", 200), load("h2", "a", 100), load("h2", "b", 100)}, all},
		"by host, where one is there":        {three, []trimtab.InstanceLoad{load("h1", "", 200), load("h2", "a", 100), load("h2", "b", 100)}, all},
		"by host, called otherwise":          {three, []trimtab.InstanceLoad{load("h1", "7", 120), load("h1", "8", 80), load("h2", "a", 100), load("h2", "b", 100)}, all},
		"by one of its names":                {three, []trimtab.InstanceLoad{load("h1", "x", 200), pod, load("h2", "a", 100)}, all},
		"by host, where two are there":       {three, []trimtab.InstanceLoad{load("h1", "x", 200), load("h2", "", 200)}, nil},
		"by a name that no agent knows":      {three, []trimtab.InstanceLoad{load("h1", "x", 200), load("h2", "a", 100), load("h2", "c", 100)}, nil},
		"by the name of one on another":      {three, []trimtab.InstanceLoad{load("h1", "a", 200), load("h2", "b", 100), load("h2", "x", 100)}, nil},
		"on a host without one":              {three, []trimtab.InstanceLoad{load("h1", "x", 200), load("h2", "a", 100), load("h2", "b", 100), load("h3", "a", 100)}, nil},
		"without a host, of several":         {three, []trimtab.InstanceLoad{load("", "x", 200), load("h2", "a", 100), load("h2", "b", 100)}, nil},
		"without a host, where there is one": {one, []trimtab.InstanceLoad{load("", "a", 300), load("", "b", 100)}, shares(share("h", "a", 0.75), share("h", "b", 0.25))},
	} {
		t.Run(what, func(t *testing.T) {
			e := seconds(t, make1(t, config("w")), 0, 4, c.hosts, func(n int) *trimtab.Sketch { return serving(n, 0, c.loads...) })
			if d := cmp.Diff(c.want, e.Shares); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestRequestsOfNobodyKnowsWhichInstanceLeaveTheSharesEven(t *testing.T) {
	for unnamed, want := range map[float64]int{0: 2, 1: 2, 3: 0} {
		e := seconds(t, make1(t, config("w")), 0, 4, pair, func(n int) *trimtab.Sketch { return serving(n, unnamed, load("h1", "x", 75), load("h2", "a", 25)) })
		if len(e.Shares) != want {
			t.Errorf("%v of 100 requests of none: %v, want %d shares", unnamed, e.Shares, want)
		}
	}
}

// Whether it serves nothing or its spans are lost cannot be told.
func TestAnInstanceWhoseSpansDoNotComeKeepsItsShareForAWhileAndThenHasAnEvenOne(t *testing.T) {
	a := make1(t, config("w"))
	silent := func(n int) *trimtab.Sketch { return serving(n, 0, load("h1", "x", 75)) }
	if e := seconds(t, make1(t, config("w")), 0, 30, pair, silent); e.Shares != nil {
		t.Errorf("%v though one of two never told", e.Shares)
	}
	seconds(t, a, 0, 10, pair, func(n int) *trimtab.Sketch { return serving(n, 0, load("h1", "x", 75), load("h2", "a", 25)) })
	for n := 10; n < 60; n++ {
		e := seconds(t, a, n, n+1, pair, silent)
		if len(e.Shares) > 0 && e.Shares[1].Share < 0.25 {
			t.Fatalf("second %d: its share fell to %v", n, e.Shares[1].Share)
		}
		if told := len(e.Shares) > 0; told != (n < 34) { // twice three rounds of four seconds
			t.Fatalf("second %d: %v", n, e.Shares)
		}
	}
	e := seconds(t, a, 60, 70, pair, func(n int) *trimtab.Sketch { return serving(n, 0, load("h1", "x", 75), load("h2", "a", 25)) })
	if len(e.Shares) != 2 || math.Abs(e.Shares[0].Share-0.75) > 0.01 {
		t.Errorf("it tells again: %v", e.Shares)
	}
}

func TestAnIntervalInWhichTheSpansOfAnInstanceAreLostLowersNoShare(t *testing.T) {
	a := make1(t, config("w"))
	all := func(n int) *trimtab.Sketch { return serving(n, 0, load("h1", "x", 30), load("h2", "a", 30)) }
	seconds(t, a, 0, 20, pair, all) // counts of four seconds
	for n := 20; n < 60; n++ {
		e := seconds(t, a, n, n+1, pair, func(n int) *trimtab.Sketch {
			if n%5 == 0 {
				return serving(n, 0, load("h1", "x", 30))
			}
			return all(n)
		})
		if len(e.Shares) != 2 || math.Abs(e.Shares[1].Share-0.5) > 1e-9 {
			t.Fatalf("second %d: %v", n, e.Shares)
		}
	}
}

func TestWhoLiesAboutItsRequestsLeavesTheOthersTheLeastShare(t *testing.T) {
	e := seconds(t, make1(t, config("w")), 0, 60, pair, func(n int) *trimtab.Sketch {
		return serving(n, 0, load("h1", "x", 1e12), load("h2", "a", 25))
	})
	if len(e.Shares) != 2 || math.Abs(e.Shares[1].Share-0.005) > 1e-3 || e.Validate() != nil {
		t.Errorf("%v, want a hundredth of an even share", e.Shares)
	}
}

func TestFewRequestsDoNotTellTheSharesAndMoreTellThemTogether(t *testing.T) {
	few := func(each float64) *trimtab.Estimate {
		return seconds(t, make1(t, config("w")), 0, 40, pair, func(n int) *trimtab.Sketch { return serving(n, 0, load("h1", "x", 3*each), load("h2", "a", each)) })
	}
	if e := few(1); e.Shares != nil { // 4 a second: 48 within three rounds
		t.Errorf("%v of a handful of requests", e.Shares)
	}
	if e := few(5); len(e.Shares) != 2 || math.Abs(e.Shares[0].Share-0.75) > 1e-9 {
		t.Errorf("%v, want those of ten seconds together", e.Shares)
	}
	sampled := seconds(t, make1(t, config("w")), 0, 40, pair, func(n int) *trimtab.Sketch {
		s := serving(n, 0, load("h1", "x", 300), load("h2", "a", 100))
		s.Sampled, s.Spans = true, 4
		return s
	})
	if sampled.Shares != nil {
		t.Errorf("%v: it is the requests that were seen that count", sampled.Shares)
	}
}

func TestANewInstanceIsMeasuredAsLongAsTheOthers(t *testing.T) {
	a := make1(t, config("w"))
	seconds(t, a, 0, 39, pair, func(n int) *trimtab.Sketch { return serving(n, 0, load("h1", "x", 36), load("h2", "a", 36)) })
	three := func(a *analyzer.Analyzer, at float64) {
		pair(a, at)
		a.Step(sec(at), spread("h3", at, map[string]float64{"n": 2}, 38))
	}
	told := 0
	for n := 39; n < 80; n++ {
		e := seconds(t, a, n, n+1, three, func(n int) *trimtab.Sketch {
			return serving(n, 0, load("h1", "x", 24), load("h2", "a", 24), load("h3", "n", 24))
		})
		for _, s := range e.Shares {
			if told++; math.Abs(s.Share-1./3) > 1e-9 {
				t.Fatalf("second %d: %v", n, e.Shares)
			}
		}
	}
	if told == 0 {
		t.Error("no shares were told")
	}
}

func TestTheOthersGoOnWhenAnInstanceIsGone(t *testing.T) {
	a := make1(t, config("w"))
	three := func(a *analyzer.Analyzer, at float64) {
		pair(a, at)
		a.Step(sec(at), spread("h3", at, map[string]float64{"n": 2}, -60))
	}
	seconds(t, a, 0, 10, three, func(n int) *trimtab.Sketch {
		return serving(n, 0, load("h1", "x", 90), load("h2", "a", 30), load("h3", "n", 60))
	})
	gone := func(a *analyzer.Analyzer, at float64) {
		pair(a, at)
		a.Step(sec(at), spread("h3", at, nil, -60))
	}
	e := seconds(t, a, 10, 11, gone, func(n int) *trimtab.Sketch { return serving(n, 0, load("h1", "x", 90), load("h2", "a", 30)) })
	if d := cmp.Diff(shares(share("h1", "x", 0.75), share("h2", "a", 0.25)), e.Shares, near()); d != "" {
		t.Error(d)
	}
}

func near() cmp.Option {
	return cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-9 })
}

func TestSamplesOfTheLoadsOfInstancesGoBeforeSpans(t *testing.T) {
	a := make1(t, config("w"))
	e := seconds(t, a, 0, 4, func(a *analyzer.Analyzer, at float64) {
		pair(a, at)
		a.Step(sec(at+0.9), of("h1", "x", quantity.Load, at+0.9, 30))
		a.Step(sec(at+0.9), of("h2", "a", quantity.Load, at+0.9, 30))
	}, func(n int) *trimtab.Sketch { return serving(n, 0, load("h1", "x", 75), load("h2", "a", 25)) })
	if d := cmp.Diff(shares(share("h1", "x", 0.5), share("h2", "a", 0.5)), e.Shares); d != "" {
		t.Error(d)
	}
}

func TestOfPartialSketchesInAnyOrderTheSharesAreTheSame(t *testing.T) {
	play := func(shuffle *rand.Rand) string {
		c := config("w")
		c.Partitions = 3
		a, rng := make1(t, c), rand.New(rand.NewPCG(5, 6))
		var out []trimtab.Value
		for n := range 20 {
			pair(a, float64(n))
			var in []trimtab.Value
			for partition := range 3 {
				s := serving(n, 0, load("h1", "x", 10+20*rng.Float64()), load("h2", "a", 10*rng.Float64()), load("h2", "z", 30*rng.Float64()))
				s.Partition = partition
				in = append(in, s)
			}
			if shuffle != nil {
				in = append(in, in[shuffle.IntN(3)])
				shuffle.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
			}
			for _, v := range in {
				a.Step(sec(float64(n)+1.6), v)
			}
			out = append(out, a.Step(sec(float64(n)+1.7), nil)...)
		}
		b, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	want := play(nil)
	if !strings.Contains(want, `"shares":[{"host":"h1","instance":"x","share":`) {
		t.Fatalf("no shares in %.2000s", want)
	}
	for seed := range uint64(10) {
		if d := cmp.Diff(want, play(rand.New(rand.NewPCG(seed, 0)))); d != "" {
			t.Fatalf("seed %d: %.3000s", seed, d)
		}
	}
}

func TestSharesAreTheSameAfterARestart(t *testing.T) {
	tell := func(n int) *trimtab.Sketch { return serving(n, 0, load("h1", "x", 75), load("h2", "a", 25)) }
	bySamples := func(a *analyzer.Analyzer, at float64) {
		pair(a, at)
		a.Step(sec(at+0.9), of("h1", "x", quantity.Load, at+0.9, 30))
		a.Step(sec(at+0.9), of("h2", "a", quantity.Load, at+0.9, 10))
	}
	nobody := func(n int) *trimtab.Sketch { return sketch("w", n, 100, 90) }
	for what, hosts := range map[string]func(*analyzer.Analyzer, float64){"by spans": pair, "by samples": bySamples} {
		before := make1(t, config("w"))
		want := seconds(t, before, 0, 10, hosts, tell).Shares
		after := make1(t, config("w"))
		if err := after.Restore("w", before.Snapshot()["w"]); err != nil {
			t.Fatal(err)
		}
		e := seconds(t, after, 10, 11, pair, nobody)
		if d := cmp.Diff(want, e.Shares, near()); d != "" || math.Abs(*e.Allocation-2/0.75) > 1e-6 {
			t.Errorf("%s: allocation %v, %s", what, *e.Allocation, d)
		}
		if e := seconds(t, after, 11, 60, pair, nobody); e.Shares != nil {
			t.Errorf("%s: %v though nothing tells them any more", what, e.Shares)
		}
		e = seconds(t, after, 60, 80, hosts, tell)
		if len(e.Shares) != 2 || math.Abs(e.Shares[0].Share-0.75) > 0.01 {
			t.Errorf("%s: %v once they are told again", what, e.Shares)
		}
	}
}

func TestSketchesBeyondAllNumbersDoNotEndTheSharesForEver(t *testing.T) {
	c := config("w")
	c.Partitions = 2
	a := make1(t, c)
	half := func(requests float64) func(n int) *trimtab.Sketch {
		return func(n int) *trimtab.Sketch {
			other := serving(n, 0, load("h1", "x", 3*requests), load("h2", "a", requests))
			other.Partition = 1
			a.Step(sec(float64(n)+1.6), other)
			return serving(n, 0, load("h1", "x", 3*requests), load("h2", "a", requests))
		}
	}
	seconds(t, a, 0, 10, pair, half(4e307))
	e := seconds(t, a, 10, 20, pair, half(25))
	if err := e.Validate(); err != nil || len(e.Shares) != 2 || math.Abs(e.Shares[0].Share-0.75) > 0.01 {
		t.Errorf("%v, %v", e.Shares, err)
	}
}

func TestWhySpansDoNotTellTheSharesIsAmongTheInputs(t *testing.T) {
	for what, c := range map[string]struct {
		of   func(n int) *trimtab.Sketch
		want string
	}{
		"all is told":       {func(n int) *trimtab.Sketch { return serving(n, 0, load("h1", "x", 75), load("h2", "a", 25)) }, ""},
		"nobody is named":   {func(n int) *trimtab.Sketch { return serving(n, 100) }, ""},
		"another is named":  {func(n int) *trimtab.Sketch { return serving(n, 0, load("h1", "x", 70), load("h7", "z", 30)) }, `30% of the requests are of no instance that is there, such as ["z"] on host "h7"`},
		"some are not":      {func(n int) *trimtab.Sketch { return serving(n, 20, load("h1", "x", 60), load("h2", "a", 20)) }, "20% of the requests are of no instance that is there"},
		"one does not tell": {func(n int) *trimtab.Sketch { return serving(n, 0, load("h1", "x", 100)) }, "no span of instance a on host h2"},
		"there are few":     {func(n int) *trimtab.Sketch { return serving(n, 0, load("h1", "x", 3), load("h2", "a", 1)) }, "too few requests: 40 in 10s, want 200"},
	} {
		e := seconds(t, make1(t, config("w")), 0, 10, pair, c.of)
		got := ""
		for _, in := range e.Inputs {
			if in.Name == "shares" {
				got = in.Missing
			}
		}
		if got != c.want || e.Hold != nil {
			t.Errorf("%s: %q, want %q; %v", what, got, c.want, e.Hold)
		}
	}
}

func BenchmarkServed(b *testing.B) {
	a, err := newAnalyzer("w")
	if err != nil {
		b.Fatal(err)
	}
	h := &trimtab.Holding{Pool: "p", Host: "h"}
	var loads []trimtab.InstanceLoad
	for i := range trimtab.MaxShares {
		name := "i" + strings.Repeat("0", 3) + string(rune('a'+i%26)) + time.Duration(i).String()
		h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "p", Host: "h", Workload: "w", Instance: name, Resource: "cpu"}, Now: trimtab.Units(2), Since: sec(-60), Max: 8})
		loads = append(loads, load("h", name, 100))
	}
	b.ReportAllocs()
	for n := range b.N {
		h.Time = sec(float64(n))
		a.Step(h.Time, h)
		a.Step(sec(float64(n)+1.6), serving(n, 0, loads...))
		a.Step(sec(float64(n)+1.7), nil)
	}
}
