package drf

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/fair"
)

// drawPool draws a pool in which everybody wants as much as it can get, with
// one weight each.
func drawPool(t *rapid.T, most int) Problem {
	m := rapid.IntRange(1, most).Draw(t, "resources")
	p := Problem{Capacities: make([]float64, m)}
	number := func(what string) float64 { return float64(rapid.IntRange(1, 12).Draw(t, what)) / 4 }
	for r := range p.Capacities {
		p.Capacities[r] = number("capacity") * 4
	}
	for range rapid.IntRange(1, 7).Draw(t, "tenants") {
		p.Tenants = append(p.Tenants, Tenant{Weight: number("weight"), Demands: drawDemands(t, m)})
	}
	return p
}

func drawDemands(t *rapid.T, resources int) []Demand {
	var out []Demand
	for r := range resources {
		if a := rapid.IntRange(0, 8).Draw(t, "demand"); a > 2 || r == resources-1 && out == nil {
			out = append(out, Demand{Resource: r, Amount: float64(max(1, a)) / 4})
		}
	}
	return out
}

func mustSolve(t *rapid.T, p Problem) Solution {
	s, err := Solve(p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tasks is how many times its demand a tenant could run on a bundle.
func tasks(of Tenant, bundle func(resource int) float64) float64 {
	n := math.Inf(1)
	for _, d := range of.Demands {
		n = min(n, bundle(d.Resource)/d.Amount)
	}
	return n
}

func bundleOf(p Problem, s Solution, i int) func(int) float64 {
	return func(r int) float64 {
		for k, d := range p.Tenants[i].Demands {
			if d.Resource == r {
				return s.Allocation[i][k]
			}
		}
		return 0
	}
}

const slack = 1 + 1e-9

// "Sharing incentive: each user should be better off sharing the cluster,
// than exclusively using her own partition": with weights, the partition is
// w_i / Σ w of every resource.
func TestNobodyIsWorseOffThanWithItsEntitlement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t, 4)
		s, total := mustSolve(t, p), 0.0
		for _, tenant := range p.Tenants {
			total += tenant.Weight
		}
		for i, tenant := range p.Tenants {
			own := tasks(tenant, func(r int) float64 { return p.Capacities[r] * tenant.Weight / total })
			if has := tasks(tenant, bundleOf(p, s, i)); has*slack < own {
				t.Fatalf("tenant %d runs %v tasks, %v on its own part\n%+v", i, has, own, p)
			}
		}
	})
}

// "Envy-freeness: a user should not prefer the allocation of another user",
// scaled by what each is entitled to.
func TestNobodyPrefersTheBundleOfAnotherPerWeight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t, 4)
		s := mustSolve(t, p)
		for i, a := range p.Tenants {
			has := tasks(a, bundleOf(p, s, i))
			for j, b := range p.Tenants {
				other := bundleOf(p, s, j)
				if would := tasks(a, func(r int) float64 { return other(r) * a.Weight / b.Weight }); would > has*slack {
					t.Fatalf("tenant %d runs %v tasks, %v on the bundle of %d\n%+v", i, has, would, j, p)
				}
			}
		}
	})
}

// "Pareto efficiency: it should not be possible to increase the allocation of
// a user without decreasing the allocation of at least another user."
func TestNobodyCanGetMoreWithoutAnotherGettingLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t, 4)
		for i := range p.Tenants {
			if rapid.Bool().Draw(t, "finite") {
				l := float64(rapid.IntRange(0, 12).Draw(t, "limit")) / 4
				p.Tenants[i].Limit = &l
			}
		}
		s := mustSolve(t, p)
		for i, tenant := range p.Tenants {
			if tenant.Limit != nil && tasks(tenant, bundleOf(p, s, i))*slack >= *tenant.Limit {
				continue
			}
			if !slices.ContainsFunc(tenant.Demands, func(d Demand) bool { return slices.Contains(s.Saturated, d.Resource) }) {
				t.Fatalf("tenant %d wants more, and nothing that it demands is full\n%+v\n%+v", i, p, s)
			}
		}
	})
}

// "Strategy-proofness: users should not be able to benefit by lying about
// their resource demands."
func TestNobodyGainsByLyingAboutItsDemand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t, 4)
		i := rapid.IntRange(0, len(p.Tenants)-1).Draw(t, "liar")
		honest := tasks(p.Tenants[i], bundleOf(p, mustSolve(t, p), i))
		lie := Problem{Capacities: p.Capacities, Tenants: slices.Clone(p.Tenants)}
		lie.Tenants[i].Demands = drawDemands(t, len(p.Capacities))
		if got := tasks(p.Tenants[i], bundleOf(lie, mustSolve(t, lie), i)); got > honest*slack {
			t.Fatalf("tenant %d runs %v tasks, %v when it says %+v\n%+v", i, honest, got, lie.Tenants[i].Demands, p)
		}
	})
}

// "Single resource fairness: for a single resource, the solution should
// reduce to max-min fairness."
func TestOneResourceIsDividedByWeightedMaxMin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPool(t, 1)
		demands, weights := make([]float64, len(p.Tenants)), make([]float64, len(p.Tenants))
		for i := range p.Tenants {
			l := float64(rapid.IntRange(0, 12).Draw(t, "limit")) / 4
			p.Tenants[i].Limit = &l
			demands[i], weights[i] = l*p.Tenants[i].Demands[0].Amount, p.Tenants[i].Weight
		}
		s := mustSolve(t, p)
		want, err := fair.NJC(p.Capacities[0], demands, weights)
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Tenants {
			if math.Abs(s.Allocation[i][0]-want.Allocation[i]) > 1e-9 {
				t.Fatalf("tenant %d gets %v, want %v\n%+v", i, s.Allocation[i][0], want.Allocation[i], p)
			}
		}
	})
}

func TestMistakesAreNamedByKindAndRowBeforeAnythingIsSolved(t *testing.T) {
	good := Tenant{Weight: 1, Demands: []Demand{{Resource: 0, Amount: 1}}}
	negative, nan := -1.0, math.NaN()
	one := func(d Demand) Problem {
		return Problem{Capacities: []float64{1, 2}, Tenants: []Tenant{good, {Weight: 1, Demands: []Demand{d}}}}
	}
	for k, c := range []struct {
		p     Problem
		want  error
		place string
	}{
		{one(Demand{Amount: -1}), ErrDemand, "row 1"},
		{one(Demand{Amount: nan}), ErrDemand, "row 1"},
		{one(Demand{Amount: math.Inf(1)}), ErrDemand, "row 1"},
		{one(Demand{Resource: 2, Amount: 1}), ErrResource, "row 1: unknown resource 2"},
		{one(Demand{Resource: -1, Amount: 1}), ErrResource, "row 1"},
		{one(Demand{Amount: 1, Weight: -1}), ErrWeight, "row 1"},
		{one(Demand{Amount: 1, Weight: 1e-200}), ErrWeight, "row 1"},
		{one(Demand{Amount: 1e-300}), ErrWeight, "row 1"},
		{Problem{Capacities: []float64{1}, Tenants: []Tenant{{Weight: 1, Demands: []Demand{{Amount: 1}, {Amount: 2}}}}}, ErrResource, "row 0: resource 0 stands there twice"},
		{Problem{Capacities: []float64{1, 1}, Tenants: []Tenant{{Weight: 1, Demands: []Demand{{Amount: 1}, {Resource: 1, Amount: 1, Weight: 1e40}}}}}, ErrWeight, "row 0"},
		{Problem{Capacities: []float64{1}, Tenants: []Tenant{{}}}, ErrWeight, "row 0: weight 0"},
		{Problem{Capacities: []float64{1}, Tenants: []Tenant{{Weight: nan}}}, ErrWeight, "row 0"},
		{Problem{Capacities: []float64{1}, Tenants: []Tenant{good, {Weight: 1, Limit: &negative}}}, ErrLimit, "row 1"},
		{Problem{Capacities: []float64{1}, Tenants: []Tenant{{Weight: 1, Limit: &nan}}}, ErrLimit, "row 0"},
		{Problem{Capacities: []float64{1, nan}}, ErrCapacity, "resource 1"},
		{Problem{Capacities: []float64{-1}}, ErrCapacity, "resource 0"},
		{Problem{Capacities: []float64{1}, Room: []float64{2}}, ErrCapacity, "resource 0"},
		{Problem{Capacities: []float64{1}, Room: []float64{}}, ErrCapacity, "0 rooms"},
		{Problem{Tenants: []Tenant{good}}, ErrResource, "row 0: unknown resource 0 of 0"},
	} {
		_, err := Solve(c.p)
		if !errors.Is(err, c.want) || !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), c.place) {
			t.Errorf("case %d: %v, want %v at %s", k, err, c.want, c.place)
		}
	}
}

func TestAnArenaThatIsTooSmallIsAnErrorThatNamesTheRow(t *testing.T) {
	size := Size{Tenants: 2, Resources: 2, Entries: 3}
	m, err := NewMatrix([]float64{1, 1}, nil, size, NewArena(size))
	if err != nil {
		t.Fatal(err)
	}
	row := Tenant{Weight: 1, Demands: []Demand{{Amount: 1}, {Resource: 1, Amount: 1}}}
	if err := m.Add(row); err != nil {
		t.Fatal(err)
	}
	if err := m.Add(row); !errors.Is(err, ErrMemory) || !strings.Contains(err.Error(), "row 1") {
		t.Error(err)
	}
	if err := m.Add(Tenant{Weight: 1}); err != nil {
		t.Error(err)
	}
	if err := m.Add(Tenant{Weight: 1}); !errors.Is(err, ErrMemory) || !strings.Contains(err.Error(), "row 2") {
		t.Error(err)
	}
	if _, err := m.Solve(Options{}); !errors.Is(err, trimtab.ErrInvalid) {
		t.Error("solved before it was sealed")
	}
	small := NewArena(Size{Tenants: 1, Resources: 2, Entries: 3})
	if _, err := NewMatrix([]float64{1, 1}, nil, size, small); !errors.Is(err, ErrMemory) {
		t.Error(err)
	}
	if _, err := NewMatrix([]float64{1, 1}, nil, Size{Tenants: 1, Resources: 2, Entries: math.MaxInt}, small); !errors.Is(err, ErrMemory) {
		t.Error(err)
	}
}
