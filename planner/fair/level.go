package fair

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/hosts"
	"github.com/trimtab/trimtab/planner/policy"
)

// bounded is one workload, or group, of a level: it gets clamp(s·weight, lo, hi) units and has
// current ones.
type bounded struct {
	lo, hi, weight float64
	current        int
}

// level returns the highest s with Σ clamp(s·weight, lo, hi) <= units, and +Inf if every hi fits.
// The sum grows piecewise linearly in s; its corners are sorted, O(n log n).
func level(units float64, of []bounded) float64 {
	type corner struct{ s, slope float64 }
	corners := make([]corner, 0, 2*len(of))
	sum, top := 0.0, 0.0
	for _, b := range of {
		sum += b.lo
		top += b.hi
		corners = append(corners, corner{b.lo / b.weight, b.weight}, corner{b.hi / b.weight, -b.weight})
	}
	if top <= units {
		return math.Inf(1)
	}
	slices.SortFunc(corners, func(a, b corner) int { return compare(a.s, b.s) })
	slope, s := 0.0, 0.0
	for _, c := range corners {
		if next := sum + slope*(c.s-s); next > units {
			break
		} else if slope > 0 {
			sum = next
		}
		s = c.s
		slope += c.slope
	}
	if slope <= 0 {
		return s
	}
	return s + (units-sum)/slope
}

// round turns the shares at level s into whole units that sum to at most units: every share is
// rounded down, and the units that are left go to the largest remainders; ties: first to those
// that would otherwise lose a unit that they have, then by name.
func round(left int, of []bounded, s float64) []int {
	type part struct {
		at        int
		remainder float64
		holds     bool
	}
	units := make([]int, len(of))
	var parts []part
	for i, b := range of {
		share := math.Min(math.Max(s*b.weight, b.lo), b.hi)
		units[i] = int(math.Floor(share + grain))
		left -= units[i]
		if r := share - float64(units[i]); r > grain {
			parts = append(parts, part{i, math.Round(r / grain), b.current > units[i]})
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int {
		if a.remainder != b.remainder {
			return compare(b.remainder, a.remainder)
		}
		if a.holds != b.holds {
			if a.holds {
				return -1
			}
			return 1
		}
		return compare(float64(a.at), float64(b.at))
	})
	for _, t := range parts {
		if left <= 0 {
			break
		}
		units[t.at]++
		left--
	}
	return units
}

// grain is the fraction of a unit below which shares count as equal.
const grain = 1e-9

// solve divides the units down the tree of groups, each workload between its minimum and the most
// that it wants.
func solve(p *policy.Problem, want func(*policy.Workload) int) (policy.Solution, error) {
	if err := p.ValidateHosts(); err != nil {
		return policy.Solution{}, err
	}
	p, one := hosts.Fold(p)
	s := policy.Solution{Units: make([]int, len(p.Workloads)), Binding: make([]trimtab.Binding, len(p.Workloads))}
	most := make([]int, len(p.Workloads))
	for i := range p.Workloads {
		w := &p.Workloads[i]
		most[i] = min(max(want(w), w.Min), w.Max)
	}
	if !one {
		return overHosts(p, most), nil
	}
	t := treeOf(p, most)
	t.divide(p.Units, s.Units)
	for i, w := range p.Workloads {
		switch {
		case s.Units[i] < most[i]:
			s.Binding[i] = trimtab.Binding{Kind: codes.BindingCapacity}
		case s.Units[i] == w.Max:
			s.Binding[i] = trimtab.Binding{Kind: codes.BindingMax}
		default:
			s.Binding[i] = trimtab.Binding{Kind: codes.BindingDemand}
		}
	}
	return s, nil
}

// NJCPolicy is the NJC procedure on whole units, over the recommended demands,
// down the tree of groups. A workload without a curve demands what it has.
type NJCPolicy struct {
	// LoadWeight is the weight of the load's upper bound over its mean in the
	// load that demands are read at, in (0, 1]. Default 0.4: at the bound some
	// capacity lies idle, at the mean the peaks of a round are missed.
	LoadWeight float64
}

// Traits says that no workload demands more than its SLO needs. The score is F_NJC (equation 3),
// with utilities linear up to the recommended demand.
func (n NJCPolicy) Traits() policy.Traits {
	t := policy.Traits{Serves: true, Caution: 0.4, Scorer: scorer}
	if n.LoadWeight > 0 {
		t.Caution = math.Min(n.LoadWeight, 1)
	}
	return t
}

// Name returns "njc".
func (NJCPolicy) Name() string { return "njc" }

// Solve divides the units; see [policy.Policy] for the errors. It takes
// O(n log n) time. Its value is F_NJC over the demands.
func (NJCPolicy) Solve(p *policy.Problem) (policy.Solution, error) {
	s, err := solve(p, demand)
	if err != nil {
		return s, err
	}
	for i, w := range p.Workloads {
		if w.Curve == nil {
			s.Binding[i] = trimtab.Binding{Kind: codes.BindingUnknown}
		}
	}
	s.Value = scorer(p)(s.Units)
	s.Bound = s.Value
	return s, nil
}

// ResourceFair gives each workload its entitlement, whatever its need.
type ResourceFair struct{}

// Name returns "resource-fair".
func (ResourceFair) Name() string { return "resource-fair" }

// Solve divides the units; see [policy.Policy] for the errors.
func (ResourceFair) Solve(p *policy.Problem) (policy.Solution, error) {
	s, err := solve(p, func(w *policy.Workload) int { return w.Max })
	if err != nil {
		return s, err
	}
	s.Value = scorer(p)(s.Units)
	s.Bound = s.Value
	return s, nil
}

// Traits has the score of [NJCPolicy]: 1 unless a bound reduces an entitlement.
func (ResourceFair) Traits() policy.Traits { return policy.Traits{Scorer: scorer} }

func demand(w *policy.Workload) int {
	if w.Curve == nil {
		return w.Current
	}
	return w.Demand
}

// scorer compares with the entitlements by weight alone, so guarantees to some workloads lower the
// score of the others.
func scorer(p *policy.Problem) func(units []int) float64 {
	p, _ = hosts.Fold(p)
	due := entitlements(p)
	return func(units []int) float64 {
		f := 1.0
		for i := range p.Workloads {
			if d := float64(demand(&p.Workloads[i])); d > 0 && due[i] > 0 {
				f = math.Min(f, math.Min(1, float64(units[i])/d)/math.Min(1, due[i]/d))
			}
		}
		return f
	}
}
