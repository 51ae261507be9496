// Package plantest is the contract of [policy.Policy] as a test suite. Every
// policy runs it.
//
// It tries small problems with plenty of ties, unknown curves, groups and hosts.
// It does not test what an objective is: how an answer compares with the one by
// definition is a test of its own.
//
//	func TestNJCMeetsTheContractOfPolicies(t *testing.T) {
//		plantest.Run(t, plantest.Suite{New: func() policy.Policy { return fair.NJCPolicy{} }})
//	}
package plantest

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

// Suite says how to make a policy, and which properties of the contract it does not have.
type Suite struct {
	// New makes the policy.
	New func() policy.Policy
	// Except has the names of the properties that the policy does not have, by
	// design, and why.
	Except map[string]string
}

// Run runs the suite.
func Run(t *testing.T, s Suite) {
	left := maps.Clone(s.Except)
	for _, p := range properties() {
		if _, ok := left[p.name]; ok {
			delete(left, p.name)
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { p.hold(t, s.New()) })
		})
	}
	for name := range left {
		t.Errorf("%s is no property", name)
	}
}

// property is one sentence of the contract.
type property struct {
	name string
	hold func(t *rapid.T, o policy.Policy)
}

func properties() []property {
	return []property{
		{"AnAnswerKeepsBoundsAndCapacitiesAndSaysWhatBinds", feasible},
		{"TheSameProblemHasTheSameAnswerAndIsLeftAsItWas", pure},
		{"TheValueIsThatOfTheUnitsAndNoMoreThanItsBound", valued},
		{"WhatCannotBeIsRefused", refused},
		{"HostsAreKeptOrRefused", onHosts},
		{"OneHostThatHoldsEverythingChangesNoBit", oneHost},
		{"AnAnswerThatIsCutShortIsFeasibleAndSaysSo", stopped},
		{"OfEqualWorkloadsTheFirstByNameGetsNoLess", equals},
		{"NoAllocationScoresMoreThanTheBound", bounded},
		{"AnAnswerThatIsThereIsKept", kept},
		{"AWrapperKeepsWhatAPolicyCanDo", wrapped},
		{"CautionIsAShareAndWhatIsCountedOnLiesInTheBand", counted},
		{"WhatServesHasNoUseForMoreThanTheSLOs", serves},
		{"WhatWeighsCountsUtilitiesAlone", weighs},
		{"AQuestionAboutOneResourceIsAnsweredAsAProblem", shares},
	}
}

// solve fails for an answer that cannot be.
func solve(t *rapid.T, o policy.Policy, p *policy.Problem) policy.Solution {
	t.Helper()
	s, err := o.Solve(p)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Units) != len(p.Workloads) || len(s.Binding) != len(p.Workloads) {
		t.Fatalf("%d units and %d constraints for %d workloads", len(s.Units), len(s.Binding), len(p.Workloads))
	}
	sum, used := 0, make([]float64, len(p.Hosts))
	for i, w := range p.Workloads {
		if s.Units[i] < w.Min || s.Units[i] > w.Max {
			t.Fatalf("%s gets %d units, bounds %d to %d", w.Name, s.Units[i], w.Min, w.Max)
		}
		if s.Binding[i].Kind == "" {
			t.Fatalf("nothing binds %s", w.Name)
		}
		for _, part := range w.Parts {
			used[part.Host] += part.Share * float64(s.Units[i])
		}
		sum += s.Units[i]
	}
	if sum > p.Units {
		t.Fatalf("%d of %d units are given out", sum, p.Units)
	}
	for h, u := range used {
		if u > p.Hosts[h].Units+1e-6 {
			t.Fatalf("%v of %v units of %s are given out", u, p.Hosts[h].Units, p.Hosts[h].Name)
		}
	}
	return s
}

func feasible(t *rapid.T, o policy.Policy) { solve(t, o, draw(t)) }

func pure(t *rapid.T, o policy.Policy) {
	p := draw(t)
	before := text(p)
	first := solve(t, o, p)
	if after := text(p); after != before {
		t.Fatalf("the problem was\n%s\nand became\n%s", before, after)
	}
	if again := solve(t, o, p); fmt.Sprint(again) != fmt.Sprint(first) {
		t.Fatalf("%v, then %v", first, again)
	}
}

func valued(t *rapid.T, o policy.Policy) {
	p := draw(t)
	s := solve(t, o, p)
	if s.Cut {
		t.Fatal("cut short, which nobody asked for")
	}
	if !(s.Bound >= s.Value) || math.IsInf(s.Bound, 0) || !(s.Gap() >= 0 && s.Gap() <= 1) {
		t.Fatalf("value %v, bound %v, gap %v", s.Value, s.Bound, s.Gap())
	}
	if scorer := o.Traits().Scorer; scorer != nil {
		if score := scorer(p)(s.Units); !near(score, s.Value) {
			t.Fatalf("value %v, the units score %v", s.Value, score)
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(b)) }

func refused(t *rapid.T, o policy.Policy) {
	p := draw(t)
	w := &p.Workloads[rapid.IntRange(0, len(p.Workloads)-1).Draw(t, "workload")]
	want := trimtab.ErrInvalid
	switch rapid.IntRange(0, 8).Draw(t, "fault") {
	case 0:
		p.Units = -1
	case 1:
		p.Unit = rapid.SampledFrom([]float64{0, -1, math.NaN(), math.Inf(1)}).Draw(t, "unit")
	case 2:
		w.Min, w.Max = 2, 1
	case 3:
		w.Min = -1
	case 4:
		w.Current = -1
	case 5:
		w.Weight = rapid.SampledFrom([]float64{0, -1, math.NaN(), math.Inf(1)}).Draw(t, "weight")
	case 6:
		p.Workloads = append(p.Workloads, p.Workloads[0])
	case 7:
		w.Curve = &trimtab.Curve{}
	default:
		w.Min, w.Max, want = p.Units+1, p.Units+1, trimtab.ErrInfeasible
	}
	if s, err := o.Solve(p); !errors.Is(err, want) {
		t.Fatalf("%v, %v: want %v", s, err, want)
	}
}

func onHosts(t *rapid.T, o policy.Policy) {
	p := drawHosts(t)
	if _, err := o.Solve(p); errors.Is(err, trimtab.ErrUnsupported) {
		return
	}
	if s := solve(t, o, p); !(s.Bound >= s.Value) {
		t.Fatalf("value %v, bound %v", s.Value, s.Bound)
	}
	// One host that holds no minimum.
	w := &p.Workloads[0]
	w.Min, w.Max = 1, max(1, w.Max)
	w.Parts = []policy.Part{{Host: 0, Share: 1}}
	p.Hosts[0].Units = 0.5
	if s, err := o.Solve(p); !errors.Is(err, trimtab.ErrInfeasible) {
		t.Fatalf("%v, %v: want %v", s, err, trimtab.ErrInfeasible)
	}
}

func oneHost(t *rapid.T, o policy.Policy) {
	p := draw(t)
	want := solve(t, o, p)
	with := copyOf(p)
	with.Hosts = []policy.Host{{Name: "h", Units: float64(p.Units)}, {Name: "idle", Units: 1}}
	for i := range with.Workloads {
		with.Workloads[i].Parts = []policy.Part{{Share: 1}}
	}
	if rapid.Bool().Draw(t, "more in the pool") {
		with.Units *= 2
	}
	if _, err := o.Solve(with); errors.Is(err, trimtab.ErrUnsupported) {
		return
	}
	if got := solve(t, o, with); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%v, without hosts %v", got, want)
	}
}

// stopped also checks that an answer which is not marked as cut equals the one without a
// deadline.
func stopped(t *rapid.T, o policy.Policy) {
	p := draw(t)
	if rapid.Bool().Draw(t, "hosts") {
		p = drawHosts(t)
		if _, err := o.Solve(p); errors.Is(err, trimtab.ErrUnsupported) {
			return
		}
	}
	want := solve(t, o, p)
	left := rapid.IntRange(0, 5).Draw(t, "asked")
	p.Stop = func() bool { left--; return left < 0 }
	got := solve(t, o, p)
	if !got.Cut && fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%v, and %v with a deadline that it does not tell of", want, got)
	}
}

func equals(t *rapid.T, o policy.Policy) {
	p := draw(t)
	i := rapid.IntRange(0, len(p.Workloads)-1).Draw(t, "twin")
	twin := p.Workloads[i]
	twin.Name += "+" // next to it
	twin.Min, p.Workloads[i].Min = 0, 0
	p.Workloads = append(p.Workloads[:i+1:i+1], append([]policy.Workload{twin}, p.Workloads[i+1:]...)...)
	if s := solve(t, o, p); s.Units[i] < s.Units[i+1] {
		t.Fatalf("%v: %s has less than its twin, %s", s.Units, p.Workloads[i].Name, twin.Name)
	}
}

// bounded needs curves without bands: a move within a band may have a cost, and the bound
// includes the costs of moving.
func bounded(t *rapid.T, o policy.Policy) {
	scorer := o.Traits().Scorer
	if scorer == nil {
		return
	}
	p := certain(draw(t))
	s, score := solve(t, o, p), scorer(p)
	every(p, s.Units, func(units []int) {
		if v := score(units); v > s.Bound && !near(v, s.Bound) {
			t.Fatalf("%v scores %v, more than the bound %v of %v, which scores %v", units, v, s.Bound, s.Units, s.Value)
		}
	})
}

// kept tests workloads whose curves are known, as the demand of others is what they have.
func kept(t *rapid.T, o policy.Policy) {
	p := draw(t)
	for i := range p.Workloads {
		if w := &p.Workloads[i]; w.Curve == nil {
			w.Curve = drawCurve(t, p.Unit)
		}
	}
	certain(p)
	s := solve(t, o, p)
	for i := range p.Workloads {
		p.Workloads[i].Current = s.Units[i]
	}
	if again := solve(t, o, p); fmt.Sprint(again.Units) != fmt.Sprint(s.Units) {
		t.Fatalf("%v, and when everybody has that, %v", s.Units, again.Units)
	}
}

// every visits all allocations in which workloads without a curve have what the
// answer gives them.
func every(p *policy.Problem, answer []int, visit func(units []int)) {
	units := make([]int, len(p.Workloads))
	var walk func(i, left int)
	walk = func(i, left int) {
		if i == len(units) {
			visit(units)
			return
		}
		from, to := p.Workloads[i].Min, p.Workloads[i].Max
		if p.Workloads[i].Curve == nil {
			from, to = answer[i], answer[i]
		}
		for k := from; k <= min(to, left); k++ {
			units[i] = k
			walk(i+1, left-k)
		}
	}
	walk(0, p.Units)
}
