package fair

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

func TestNJCAgreesWithKnownAnswers(t *testing.T) {
	f, err := os.Open("testdata/njc.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		var c struct {
			Input struct {
				Capacity         float64
				Demands, Weights []float64
			}
			Expected Result
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		got, err := NJC(c.Input.Capacity, c.Input.Demands, c.Input.Weights)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.Expected, got, cmpopts.EquateApprox(1e-9, 1e-9)); d != "" {
			t.Errorf("case %d: want (-), got (+): %s", n+1, d)
		}
	}
	if n == 0 {
		t.Fatal("no cases")
	}
}

// literal is the procedure of Cilantro 4.1.1, word by word: "In the first
// round, it sets each user's share to be R/n. It allocates d_j to each user j
// for whom d_j is smaller than the share. … It repeats this until all the
// remaining users' demands are larger than their share. It then divides up the
// remaining resources equally among the remaining users."
func literal(capacity float64, demands, weights []float64) (allocation []float64, share float64, all bool) {
	allocation = make([]float64, len(demands))
	met := make([]bool, len(demands))
	for {
		left, weight := capacity, 0.0
		for j := range demands {
			if met[j] {
				left -= allocation[j]
			} else {
				weight += weights[j]
			}
		}
		if weight == 0 {
			return allocation, 0, true
		}
		share = left / weight
		any := false
		for j, d := range demands {
			if !met[j] && d < share*weights[j] {
				allocation[j], met[j], any = d, true, true
			}
		}
		if !any {
			for j := range demands {
				if !met[j] {
					allocation[j] = share * weights[j]
				}
			}
			return allocation, share, false
		}
	}
}

func TestNJCIsTheProcedure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := float64(rapid.IntRange(0, 400).Draw(t, "capacity")) / 4
		n := rapid.IntRange(0, 12).Draw(t, "n")
		demands, weights := make([]float64, n), make([]float64, n)
		for j := range demands {
			demands[j] = float64(rapid.IntRange(0, 200).Draw(t, "demand")) / 8
			weights[j] = float64(rapid.IntRange(1, 8).Draw(t, "weight"))
		}
		got, err := NJC(capacity, demands, weights)
		if err != nil {
			t.Fatal(err)
		}
		want, share, all := literal(capacity, demands, weights)
		if d := cmp.Diff(want, got.Allocation, cmpopts.EquateApprox(1e-9, 1e-9)); d != "" {
			t.Fatal(d)
		}
		if all != (got.Share == nil) || !all && math.Abs(*got.Share-share) > 1e-9*(1+share) {
			t.Fatalf("share %v, want %v (all met: %v)", got.Share, share, all)
		}
		sum, fair := 0.0, 1.0
		total := 0.0
		for _, w := range weights {
			total += w
		}
		for j, a := range got.Allocation {
			sum += a
			if demands[j] > 0 && capacity > 0 {
				due := math.Min(1, weights[j]*capacity/total/demands[j])
				fair = math.Min(fair, math.Min(1, a/demands[j])/due)
			}
		}
		if math.Abs(sum+got.Unused-capacity) > 1e-9*(1+capacity) {
			t.Fatalf("%v given and %v unused of %v", sum, got.Unused, capacity)
		}
		// Nobody has a justified complaint.
		if got.Fairness < 1-1e-9 || got.Fairness > 1 || math.Abs(fair-got.Fairness) > 1e-9 {
			t.Fatalf("F_NJC %v, by hand %v", got.Fairness, fair)
		}
	})
}

func TestNJCRefusesNonsense(t *testing.T) {
	for _, c := range []struct {
		capacity         float64
		demands, weights []float64
	}{
		{math.NaN(), nil, nil}, {-1, nil, nil}, {math.Inf(1), nil, nil}, {1, []float64{-1}, nil}, {1, []float64{math.NaN()}, nil},
		{1, []float64{1}, []float64{0}}, {1, []float64{1}, []float64{1, 1}}, {1, []float64{1, 1}, []float64{1e308, 1e308}},
	} {
		if _, err := NJC(c.capacity, c.demands, c.weights); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func drawProblem(t *rapid.T) *policy.Problem {
	p := &policy.Problem{Units: rapid.IntRange(0, 60).Draw(t, "units"), Unit: 0.1}
	least := 0
	for i := range rapid.IntRange(1, 6).Draw(t, "workloads") {
		w := policy.Workload{Name: fmt.Sprint("w", i), Curve: &trimtab.Curve{Knots: make([]trimtab.Knot, 1)}}
		w.Weight = float64(rapid.IntRange(1, 4).Draw(t, "weight"))
		w.Min = rapid.IntRange(0, 5).Draw(t, "min")
		if least += w.Min; least > p.Units {
			least, w.Min = least-w.Min, 0
		}
		w.Max = rapid.IntRange(w.Min, 70).Draw(t, "max")
		w.Demand = rapid.IntRange(0, 70).Draw(t, "demand")
		w.Current = rapid.IntRange(0, 70).Draw(t, "current")
		p.Workloads = append(p.Workloads, w)
	}
	return p
}

// The whole-unit answer by filling one unit at a time: the unit goes to who
// has least per weight and still wants one.
func TestPoliciesFillFromBelow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		for _, objective := range []policy.Policy{NJCPolicy{}, ResourceFair{}} {
			got, err := objective.Solve(p)
			if err != nil {
				t.Fatal(err)
			}
			want := func(w policy.Workload) int {
				if objective.Name() == "njc" {
					return min(max(w.Demand, w.Min), w.Max)
				}
				return w.Max
			}
			sum, wanted := 0, 0
			for j, w := range p.Workloads {
				if got.Units[j] < w.Min || got.Units[j] > want(w) {
					t.Fatalf("%s: %s got %d, bounds %d to %d", objective.Name(), w.Name, got.Units[j], w.Min, want(w))
				}
				sum += got.Units[j]
				wanted += want(w)
			}
			if sum != min(wanted, p.Units) {
				t.Fatalf("%s: %d units of %d, %d wanted", objective.Name(), sum, p.Units, wanted)
			}
			// Whoever could give a unit is at most one unit above its share
			// at the level of whoever wants one.
			for i, a := range p.Workloads {
				for j, b := range p.Workloads {
					if i == j || got.Units[i] >= want(a) || got.Units[j] <= b.Min {
						continue
					}
					if float64(got.Units[j]-1)/b.Weight > float64(got.Units[i]+1)/a.Weight+1e-9 {
						t.Fatalf("%s: %s has %d of weight %v, while %s wants more than %d of weight %v", objective.Name(),
							b.Name, got.Units[j], b.Weight, a.Name, got.Units[i], a.Weight)
					}
				}
			}
		}
	})
}

func TestRemaindersGoToTheLargestThenToHoldersThenByName(t *testing.T) {
	w := func(name string, current int) policy.Workload {
		return policy.Workload{Name: name, Weight: 1, Max: 10, Current: current}
	}
	for _, c := range []struct {
		current [3]int
		units   int
		want    []int
	}{
		{[3]int{0, 0, 0}, 10, []int{4, 3, 3}},
		{[3]int{3, 3, 4}, 10, []int{3, 3, 4}},
		{[3]int{3, 4, 4}, 11, []int{3, 4, 4}},
	} {
		p := &policy.Problem{Units: c.units, Unit: 1, Workloads: []policy.Workload{w("a", c.current[0]), w("b", c.current[1]), w("c", c.current[2])}}
		got, err := ResourceFair{}.Solve(p)
		if err != nil || cmp.Diff(c.want, got.Units) != "" {
			t.Errorf("%+v: %v (%v)", c, got.Units, err)
		}
	}
}

func TestAnUnknownCurveDemandsWhatItHas(t *testing.T) {
	p := &policy.Problem{Units: 10, Unit: 1, Workloads: []policy.Workload{
		{Name: "a", Weight: 1, Max: 10, Current: 3}, {Name: "b", Weight: 1, Max: 10, Demand: 9, Curve: &trimtab.Curve{Knots: make([]trimtab.Knot, 1)}}}}
	got, err := NJCPolicy{}.Solve(p)
	if err != nil || cmp.Diff([]int{3, 7}, got.Units) != "" || got.Binding[0].Kind != "unknown curve" || got.Binding[1].Kind != "capacity" {
		t.Errorf("%+v (%v)", got, err)
	}
}
