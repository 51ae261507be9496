package fair

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

// member is a workload of the tests, with a curve.
func member(name, group string, demand int) policy.Workload {
	return policy.Workload{Name: name, Group: group, Weight: 1, Max: 1000, Demand: demand, Curve: &trimtab.Curve{Knots: make([]trimtab.Knot, 1)}}
}

func unitsOf(t *testing.T, p *policy.Problem) []int {
	t.Helper()
	s, err := NJCPolicy{}.Solve(p)
	if err != nil {
		t.Fatal(err)
	}
	return s.Units
}

// Two groups of equal weight share 60 units; one has a single member, the
// other three. The single one is entitled to half, not to a quarter.
func TestGroupsShareFromTheRootDown(t *testing.T) {
	p := &policy.Problem{Units: 60, Unit: 1, Workloads: []policy.Workload{
		member("a", "x", 100), member("b", "y", 100), member("c", "y", 100), member("d", "y", 4)}}
	if d := cmp.Diff([]int{30, 13, 13, 4}, unitsOf(t, p)); d != "" {
		t.Error(d)
	}
	p.Groups = []policy.Group{{Path: "y", Weight: 2}}
	if d := cmp.Diff([]int{20, 18, 18, 4}, unitsOf(t, p)); d != "" {
		t.Error(d)
	}
	// What one group does not want is the other's.
	p.Workloads[0].Demand = 6
	if d := cmp.Diff([]int{6, 25, 25, 4}, unitsOf(t, p)); d != "" {
		t.Error(d)
	}
}

func TestAGuaranteeComesBeforeWeightsAsFarAsItIsDemanded(t *testing.T) {
	p := &policy.Problem{Units: 60, Unit: 1, Workloads: []policy.Workload{member("a", "", 100), member("b", "", 100), member("c", "", 100)}}
	p.Workloads[0].Guarantee = 40
	if d := cmp.Diff([]int{40, 10, 10}, unitsOf(t, p)); d != "" {
		t.Error(d)
	}
	p.Workloads[0].Demand = 14
	if d := cmp.Diff([]int{14, 23, 23}, unitsOf(t, p)); d != "" {
		t.Error(d)
	}
	// More guaranteed than there is: in proportion.
	p.Workloads[0].Demand = 100
	p.Workloads[1].Guarantee = 80
	if d := cmp.Diff([]int{20, 40, 0}, unitsOf(t, p)); d != "" {
		t.Error(d)
	}
	// A group's guarantee is its members'.
	p = &policy.Problem{Units: 60, Unit: 1, Groups: []policy.Group{{Path: "x", Weight: 1, Guarantee: 50}},
		Workloads: []policy.Workload{member("a", "x", 30), member("b", "x", 100), member("c", "", 100)}}
	if d := cmp.Diff([]int{25, 25, 10}, unitsOf(t, p)); d != "" {
		t.Error(d)
	}
}

// drawTree gives the workloads of a problem groups of up to three levels.
func drawTree(t *rapid.T) *policy.Problem {
	p := drawProblem(t)
	path := rapid.SampledFrom([]string{"", "x", "y", "x/a", "x/b", "y/a/b"})
	for i := range p.Workloads {
		w := &p.Workloads[i]
		w.Group = path.Draw(t, "group")
		w.Min, w.Guarantee = 0, rapid.SampledFrom([]int{0, 0, 3, 20}).Draw(t, "guarantee")
	}
	for _, g := range []string{"x", "x/a", "y"} {
		if rapid.Bool().Draw(t, "declared") {
			p.Groups = append(p.Groups, policy.Group{Path: g, Weight: float64(rapid.IntRange(1, 5).Draw(t, "weight")),
				Guarantee: rapid.SampledFrom([]int{0, 0, 10}).Draw(t, "guarantee")})
		}
	}
	return p
}

// byHand is the procedure at each group in turn, over real numbers: shares of
// what is left by weight, members that want no more than their share leave,
// until none does. It knows no guarantees.
func byHand(p *policy.Problem, prefix string, capacity float64, out []float64) (wanted float64) {
	type part struct {
		weight, wants float64
		give          func(float64)
	}
	parts := map[string]part{}
	var order []string
	for i, w := range p.Workloads {
		below, inside := w.Group, prefix == ""
		if prefix != "" {
			below, inside = strings.CutPrefix(w.Group, prefix)
			inside = inside && (below == "" || below[0] == '/')
			below = strings.TrimPrefix(below, "/")
		}
		if !inside {
			continue
		}
		if below == "" {
			d := float64(min(w.Demand, w.Max))
			parts[fmt.Sprint("w", i)] = part{w.Weight, d, func(v float64) { out[i] = v }}
			order = append(order, fmt.Sprint("w", i))
			wanted += d
			continue
		}
		child, _, _ := strings.Cut(below, "/")
		at := strings.TrimPrefix(prefix+"/"+child, "/")
		if _, ok := parts[at]; ok {
			continue
		}
		weight := 1.0
		for _, g := range p.Groups {
			if g.Path == at {
				weight = g.Weight
			}
		}
		d := byHand(p, at, 0, make([]float64, len(out)))
		parts[at] = part{weight, d, func(v float64) { byHand(p, at, v, out) }}
		order = append(order, at)
		wanted += d
	}
	for met := true; met && len(parts) > 0; {
		total := 0.0
		for _, q := range parts {
			total += q.weight
		}
		met = false
		share, spent := capacity/total, 0.0
		for _, name := range order {
			if q, ok := parts[name]; ok && q.wants <= share*q.weight {
				q.give(q.wants)
				spent += q.wants
				delete(parts, name)
				met = true
			}
		}
		if !met {
			for _, q := range parts {
				q.give(share * q.weight)
			}
		}
		capacity -= spent
	}
	return wanted
}

func TestTheTreeIsTheProcedureAtEachGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawTree(t)
		for i := range p.Workloads {
			p.Workloads[i].Guarantee = 0
		}
		for i := range p.Groups {
			p.Groups[i].Guarantee = 0
		}
		s, err := NJCPolicy{}.Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]float64, len(p.Workloads))
		byHand(p, "", float64(p.Units), want)
		for i, v := range want {
			// Rounding takes or gives less than one unit at each of up to four levels.
			if math.Abs(float64(s.Units[i])-v) >= 4 {
				t.Fatalf("%v, by hand %v", s.Units, want)
			}
		}
	})
}

func TestTheTreeKeepsBoundsAndLeavesNothingThatIsWanted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawTree(t)
		s, err := NJCPolicy{}.Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		sum, wanted, guaranteed := 0, 0, 0
		for i, w := range p.Workloads {
			most := min(max(w.Demand, w.Min), w.Max)
			if s.Units[i] < w.Min || s.Units[i] > most {
				t.Fatalf("%s has %d units of %d to %d", w.Name, s.Units[i], w.Min, most)
			}
			sum += s.Units[i]
			wanted += most
			guaranteed += min(w.Guarantee, most)
		}
		for _, g := range p.Groups {
			guaranteed += g.Guarantee
		}
		if sum != min(wanted, p.Units) {
			t.Fatalf("%d units of %d, %d wanted", sum, p.Units, wanted)
		}
		if guaranteed > p.Units {
			return
		}
		for i, w := range p.Workloads {
			if s.Units[i] < min(w.Guarantee, w.Demand, w.Max) {
				t.Fatalf("%s has %d units of %d guaranteed", w.Name, s.Units[i], w.Guarantee)
			}
		}
	})
}
