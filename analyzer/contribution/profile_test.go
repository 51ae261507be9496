package contribution

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

func compute(t *testing.T, p Profile) Result {
	t.Helper()
	r, err := p.Compute()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

// By hand: means 2 and 4, so P = 1/3 and 2/3; ρ = 1 and -1; Σ(T−T̄)² = 2 and
// 2, over m(m−1) = 6, so V = √(1/3)/2 and √(1/3)/4.
func TestAContributionIsTheProductOfWeightCorrelationAndVariation(t *testing.T) {
	r := compute(t, Profile{
		Components: []Series{{"a", []float64{1, 2, 3}}, {"b", []float64{5, 4, 3}}},
		Tail:       []float64{10, 20, 30},
	})
	v := math.Sqrt(1.0 / 3)
	for i, want := range []Contribution{
		{Mean: 2, P: 1.0 / 3, Rho: 1, V: v / 2, Alpha: 1, C: v / 6},
		{Mean: 4, P: 2.0 / 3, Rho: -1, V: v / 4, Alpha: 1, C: -v / 6},
	} {
		got := r.Components[i]
		if !near(got.Mean, want.Mean) || !near(got.P, want.P) || !near(got.Rho, want.Rho) || !near(got.V, want.V) || !near(got.C, want.C) || got.Alpha != 1 {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func TestOffTheCriticalPathAContributionIsScaledByTheLongestOtherPath(t *testing.T) {
	r := compute(t, Profile{
		Components: []Series{{"front", []float64{2, 2}}, {"slow", []float64{6, 10}}, {"quick", []float64{1, 3}}, {"batch", []float64{1, 1}}},
		Tail:       []float64{1, 2},
		Paths:      [][]string{{"front", "quick"}, {"front", "slow"}},
	})
	// The path over slow has length 10; the longest one over quick, 4.
	for i, want := range []float64{1, 1, 0.4, 1} {
		if got := r.Components[i].Alpha; !near(got, want) {
			t.Errorf("%s: alpha %v, want %v", r.Components[i].Name, got, want)
		}
	}
	if len(r.CriticalPath) != 2 || r.CriticalPath[1] != "slow" {
		t.Errorf("critical path %v", r.CriticalPath)
	}
}

func TestOfTwoLongestPathsTheFirstListedIsCritical(t *testing.T) {
	r := compute(t, Profile{
		Components: []Series{{"a", []float64{1}}, {"b", []float64{1}}}, Tail: []float64{1}, Paths: [][]string{{"b"}, {"a"}},
	})
	if r.CriticalPath[0] != "b" || r.Components[0].Alpha != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestTheLoadLimitIsTheFirstLoadWhoseVariationIsOverTheMean(t *testing.T) {
	r := compute(t, Profile{
		Components: []Series{{"a", []float64{1, 2, 3}}, {"even", []float64{1, 2, 3}}},
		Tail:       []float64{1, 2, 3}, Loads: []float64{0.3, 0.6, 0.9},
		CoV: map[string][]float64{"a": {0.1, 0.3, 0.2}, "even": {0.1, 0.1, 0.1}},
	})
	if got := r.Components[0].LoadLimit; got == nil || *got != 0.6 {
		t.Errorf("load limit %v, want 0.6", got)
	}
	if got := r.Components[1].LoadLimit; got != nil {
		t.Errorf("load limit %v of a component that varies as much at every load", *got)
	}
}

func TestComponentsThatDoNotVaryShareNothingAndEachTakesTheSameStep(t *testing.T) {
	r := compute(t, Profile{Components: []Series{{"a", []float64{18.71, 18.71, 18.71}}, {"b", []float64{0, 0, 0}}}, Tail: []float64{1, 2, 3}})
	for _, c := range r.Components {
		if c.C != 0 || c.Rho != 0 || c.V != 0 || c.CNorm != 0.5 || c.Step != 0.5 {
			t.Errorf("got %+v", c)
		}
	}
}

func TestClampTakesANegativeContributionForNone(t *testing.T) {
	p := Profile{Components: []Series{{"a", []float64{1, 2}}, {"b", []float64{2, 1}}}, Tail: []float64{1, 2}, Clamp: true}
	if r := compute(t, p); r.Components[1].C != 0 || r.Components[0].CNorm != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestAProfileThatCannotBeIsRefused(t *testing.T) {
	a := []Series{{"a", []float64{1}}}
	for name, p := range map[string]Profile{
		"no component":      {Tail: []float64{1}},
		"no level":          {Components: []Series{{"a", nil}}},
		"too few values":    {Components: a, Tail: []float64{1, 2}},
		"a name twice":      {Components: []Series{a[0], a[0]}, Tail: []float64{1}},
		"a negative time":   {Components: []Series{{"a", []float64{-1}}}, Tail: []float64{1}},
		"no number":         {Components: a, Tail: []float64{math.NaN()}},
		"too large":         {Components: a, Tail: []float64{1e200}},
		"an unknown path":   {Components: a, Tail: []float64{1}, Paths: [][]string{{"b"}}},
		"a loop":            {Components: a, Tail: []float64{1}, Paths: [][]string{{"a", "a"}}},
		"cov without loads": {Components: a, Tail: []float64{1}, CoV: map[string][]float64{"a": {1}}},
		"cov of nobody":     {Components: a, Tail: []float64{1}, Loads: []float64{1}, CoV: map[string][]float64{"b": {1}}},
		"a variation":       {Components: a, Tail: []float64{1}, Variation: "robust"},
	} {
		if _, err := p.Compute(); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestContributionsDoNotDependOnTheUnitAndNeverLeaveTheirBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.IntRange(1, 8).Draw(t, "m")
		times := rapid.SliceOfN(rapid.Float64Range(0, 1000), m, m)
		p := Profile{Tail: times.Draw(t, "tail")}
		scaled := Profile{Tail: p.Tail}
		for i := range rapid.IntRange(1, 6).Draw(t, "n") {
			s := Series{string(rune('a' + i)), times.Draw(t, "sojourn")}
			p.Components = append(p.Components, s)
			k := Series{Name: s.Name}
			for _, x := range s.Sojourn {
				k.Sojourn = append(k.Sojourn, 1024*x)
			}
			scaled.Components = append(scaled.Components, k)
		}
		a, err := p.Compute()
		b, err2 := scaled.Compute()
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		shares := 0.0
		for i, c := range a.Components {
			shares += c.P
			if math.Abs(c.Rho) > 1 || c.V < 0 || math.IsNaN(c.C) || math.IsNaN(c.Step) {
				t.Fatalf("got %+v", c)
			}
			if !near(c.C, b.Components[i].C) || !near(c.P, b.Components[i].P) {
				t.Fatalf("%+v, in another unit %+v", c, b.Components[i])
			}
		}
		if shares > 0 && !near(shares, 1) {
			t.Fatalf("weights add up to %v", shares)
		}
	})
}
